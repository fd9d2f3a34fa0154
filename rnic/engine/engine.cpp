// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/engine.h"

#include <algorithm>
#include <array>

namespace diwarp::rnic {

size_t Engine::do_work(Time now) {
  size_t work = take_inbox();
  work += receive(now);
  work += transmit(now);
  work += timers_.run(now, kTimersPerStep);
  if (control_step_) work += control_step_();
  return work;
}

size_t Engine::take_inbox() {
  if (unstall_.load(std::memory_order_relaxed) && unstall_.exchange(false))
    while (Endpoint* endpoint = stalled_.front()) activate(*endpoint);
  return inbox_.drain([this](MpscNode& node) {
    auto& endpoint = static_cast<Endpoint&>(node);
    endpoint.notified_.store(false);
    activate(endpoint);
  });
}

// --- Receive.

size_t Engine::receive(Time now) {
  if (input_queue_ != nullptr) gather(*input_queue_);
  size_t work = 0;
  for (Endpoint* endpoint = hot_.front(); endpoint != nullptr;) {
    Endpoint* next = hot_.next(*endpoint);
    const size_t came = endpoint->receive(now);
    work += came;
    if (endpoint->gathered_)
      cool(*endpoint);  // it announces itself again
    else
      after_direct_poll(*endpoint, came != 0);
    endpoint = next;
  }
  const bool all_hot = hot_with_descriptor_ == with_descriptor_ && awaiting_writable_ == 0 &&
                       gathered_watched_count_ == 0;
  if (all_hot) return work;
  const bool often = hot_count_ == 0 || awaiting_writable_ != 0 || crowded_;
  if (often || ++steps_since_look_ >= kStepsPerLook) work += look_at_poller(now);
  return work;
}

void Engine::after_direct_poll(Endpoint& endpoint, bool came) {
  if (endpoint.watched_ && ++endpoint.watched_polls_ > kPollsUntilUnwatched) unwatch(endpoint);
  if (came)
    endpoint.empty_polls_ = 0;
  else if (++endpoint.empty_polls_ > kEmptyPollsUntilCold / hot_count_ && watch(endpoint))
    cool(endpoint);
}

void Engine::gather(llp::InputQueue& queue) {
  queue.gather();
  ++gathers_;
  while (void* key = queue.next_ready()) {
    auto& endpoint = *static_cast<Endpoint*>(key);
    remember_announced(endpoint);
    heat(endpoint);
  }
}

void Engine::remember_announced(const Endpoint& endpoint) {
  if (announced_[0].endpoint != &endpoint) announced_[1] = announced_[0];
  announced_[0] = {&endpoint, gathers_};
}

bool Engine::announced_lately(const Endpoint& by_another_than) const {
  const Announced& last = announced_[announced_[0].endpoint == &by_another_than ? 1 : 0];
  return last.endpoint != nullptr && gathers_ - last.gather <= kEmptyPollsUntilCold;
}

bool Engine::is_alone(const Endpoint& endpoint) const {
  const bool is_hot = static_cast<const ListNode<HotTag>&>(endpoint).linked();
  const bool only_hot = !crowded_ && hot_count_ == (is_hot ? 1 : 0);
  return only_hot && active_.empty() && !announced_lately(endpoint);
}

size_t Engine::look_at_poller(Time now) {
  steps_since_look_ = 0;
  if (crowded_ && looks_in_round_ == kLooksPerRound) end_round();  // so that this look heats again
  size_t work = 0;
  const size_t count = poller_.wait(events_, Duration::zero());
  for (const llp::PollEvent& event : std::span(events_).first(count)) {
    if (event.key == input_queue_) continue;  // it only ends sleep
    auto& endpoint = *static_cast<Endpoint*>(event.key);
    if (event.writable || event.failed) {
      watch_writable(endpoint, false);
      activate(endpoint);
    }
    const bool is_hot = static_cast<ListNode<HotTag>&>(endpoint).linked();
    if (is_hot || !(event.readable || event.failed)) continue;
    if (!crowded_ && hot_with_descriptor_ >= kHotEndpoints) begin_crowd();
    heat(endpoint);
    count_in_round(endpoint);
    work += endpoint.receive(now);
  }
  if (crowded_) ++looks_in_round_;
  return work;
}

void Engine::begin_crowd() {
  crowded_ = true;
  endpoints_in_round_ = looks_in_round_ = 0;
  ++round_;
  for (Endpoint* endpoint = hot_.front(); endpoint != nullptr;) {
    Endpoint* const next = hot_.next(*endpoint);
    if (!endpoint->gathered_ && watch(*endpoint)) cool(*endpoint);
    endpoint = next;
  }
}

void Engine::count_in_round(Endpoint& endpoint) {
  if (endpoint.round_ == round_) return;
  endpoint.round_ = round_;
  ++endpoints_in_round_;
}

void Engine::end_round() {
  crowded_ = endpoints_in_round_ > kHotEndpoints;
  endpoints_in_round_ = looks_in_round_ = 0;
  ++round_;
}

void Engine::heat(Endpoint& endpoint) {
  const bool is_hot = static_cast<ListNode<HotTag>&>(endpoint).linked();
  if (is_hot || !endpoint.attached_ || !endpoint.reading_) return;
  const bool counts = !endpoint.always_hot_ && !endpoint.gathered_;
  const bool room = !crowded_ && hot_with_descriptor_ < kHotEndpoints;
  if (!room && counts && endpoint.watched_) return;
  endpoint.empty_polls_ = 0;
  hot_.push_back(endpoint);
  ++hot_count_;
  if (counts) ++hot_with_descriptor_;
}

void Engine::cool(Endpoint& endpoint) {
  const bool is_hot = static_cast<ListNode<HotTag>&>(endpoint).linked();
  const bool stays = endpoint.always_hot_ && endpoint.attached_ && endpoint.reading_;
  if (!is_hot || stays) return;
  hot_.remove(endpoint);
  --hot_count_;
  if (!endpoint.always_hot_ && !endpoint.gathered_) --hot_with_descriptor_;
}

// --- Transmit.

size_t Engine::transmit(Time now) {
  size_t work = 0;
  Endpoint* first_again = nullptr;
  for (Endpoint* endpoint = active_.front(); endpoint != nullptr && endpoint != first_again;
       endpoint = active_.front()) {
    active_.pop_front();
    serve(*endpoint, now, work);
    const bool again = static_cast<ListNode<ActiveTag>&>(*endpoint).linked() && !endpoint->stalled_;
    if (again && first_again == nullptr) first_again = endpoint;
  }
  return work;
}

void Engine::serve(Endpoint& endpoint, Time now, size_t& work) {
  const Served served = endpoint.transmit(now);
  work += served.work;
  if (!endpoint.attached_) return;
  if (served.work != 0 && !endpoint.gathered_) heat(endpoint);
  if (served.pending == Pending::stalled)
    stall(endpoint);
  else if (served.pending == Pending::writable && watch(endpoint))
    watch_writable(endpoint, true);
  else if (served.pending != Pending::nothing)
    activate(endpoint);
}

void Engine::watch_writable(Endpoint& endpoint, bool wanted) {
  if (endpoint.awaits_writable_ == wanted) return;
  endpoint.awaits_writable_ = wanted;
  awaiting_writable_ += wanted ? 1 : size_t(-1);
  update_watch(endpoint);
}

/// Those whose input is gathered are in the poller while they wait for something else: to be
/// writable, or, when they do not read, for the end of their connection. Where the poller has no
/// room, serve() tries again to write, and the next call to the socket finds the end.
void Engine::update_watch(Endpoint& endpoint) {
  const bool wanted = !endpoint.gathered_ || endpoint.awaits_writable_ || !endpoint.reading_;
  if (!wanted) return unwatch_gathered(endpoint);
  const bool reads = endpoint.reading_ && !endpoint.gathered_;
  if (watch(endpoint))
    poller_.modify(endpoint.descriptor_, &endpoint, reads, endpoint.awaits_writable_);
}

void Engine::unwatch_gathered(Endpoint& endpoint) {
  if (!endpoint.watched_) return;
  poller_.remove(endpoint.descriptor_);
  endpoint.watched_ = false;
  --gathered_watched_count_;
}

/// What is asked in every step need not be in the poller while nobody sleeps there.
void Engine::unwatch(Endpoint& endpoint) {
  endpoint.watched_polls_ = 0;
  if (sleepers_.load() != 0 || endpoint.awaits_writable_) return;
  poller_.remove(endpoint.descriptor_);
  endpoint.watched_ = false;
  endpoint.set_watched(false);
}

/// False where the system has no room for it, or it has input that its descriptor does not show:
/// then it has to stay hot.
bool Engine::watch(Endpoint& endpoint) {
  endpoint.watched_polls_ = 0;
  if (endpoint.watched_ || endpoint.descriptor_ < 0) return endpoint.watched_;
  if (!endpoint.set_watched(true)) {
    poked_.store(true);
    return false;
  }
  const bool reads = endpoint.reading_ && !endpoint.gathered_;
  endpoint.watched_ = poller_.try_add(endpoint.descriptor_, &endpoint, reads, false);
  if (endpoint.watched_ && endpoint.gathered_) ++gathered_watched_count_;
  return endpoint.watched_;
}

void Engine::activate(Endpoint& endpoint) {
  if (!endpoint.attached_) return;
  if (endpoint.stalled_) stalled_.remove(endpoint);
  endpoint.stalled_ = false;
  if (!static_cast<ListNode<ActiveTag>&>(endpoint).linked()) active_.push_back(endpoint);
}

void Engine::stall(Endpoint& endpoint) {
  if (!endpoint.attached_ || static_cast<ListNode<ActiveTag>&>(endpoint).linked()) return;
  endpoint.stalled_ = true;
  stalled_.push_back(endpoint);
}

// --- Endpoints come and go.

void Engine::attach(Endpoint& endpoint, int descriptor, llp::InputQueue* queue) {
  if (queue != nullptr && input_queue_ == nullptr) {
    poller_.add(queue->descriptor(), queue);
    input_queue_ = queue;
  }
  const bool watched = queue == nullptr && descriptor >= 0;
  if (watched) poller_.add(descriptor, &endpoint);
  endpoint.gathered_ = queue != nullptr;
  endpoint.always_hot_ = descriptor < 0;
  endpoint.watched_ = watched;
  endpoint.attached_ = true;
  endpoint.reading_ = true;
  endpoint.descriptor_ = descriptor;
  if (endpoint.watched_) ++with_descriptor_;
  if (!endpoint.watched_) heat(endpoint);
  if (endpoint.gathered_) wake();
}

void Engine::detach(Endpoint& endpoint) {
  if (!endpoint.attached_) return;
  take_inbox();  // it may be in there
  endpoint.attached_ = false;
  active_.remove(endpoint);  // or from the stalled ones
  endpoint.stalled_ = false;
  for (Announced& announced : announced_)
    if (announced.endpoint == &endpoint) announced = {};
  cool(endpoint);
  if (endpoint.descriptor_ < 0) return;
  if (endpoint.awaits_writable_) --awaiting_writable_;
  endpoint.awaits_writable_ = false;
  if (endpoint.watched_) poller_.remove(endpoint.descriptor_);
  if (!endpoint.gathered_)
    --with_descriptor_;
  else if (endpoint.watched_)
    --gathered_watched_count_;
  endpoint.watched_ = false;
}

void Engine::set_reading(Endpoint& endpoint, bool reading) {
  if (!endpoint.attached_ || endpoint.reading_ == reading) return;
  endpoint.reading_ = reading;
  if (reading)
    heat(endpoint);
  else
    cool(endpoint);
  if (reading && endpoint.gathered_) wake();  // what was announced meanwhile is not again
  update_watch(endpoint);
}

// --- The baton.

size_t Engine::poll_step() {
  const Time now = clock_.now();
  const Time last_drive = last_drive_.load(std::memory_order_relaxed);
  last_drive_.store(now, std::memory_order_relaxed);
  if (now >= put_off_nap_at_.load(std::memory_order_relaxed)) put_off_nap(now, last_drive);
  if (!try_baton()) return 0;
  const size_t work = do_work(now);
  release_baton();
  return work;
}

void Engine::notify(Endpoint& endpoint) {
  if (try_baton()) {
    activate(endpoint);
  } else {
    if (!endpoint.notified_.exchange(true)) inbox_.push(endpoint);
    if (!try_baton()) return;  // the holder looks into the inbox after it lets go
    take_inbox();
  }
  transmit(clock_.now());
  release_baton();
}

bool Engine::try_baton() {
  if (waiting_holders_.load() != 0) return false;
  return !baton_.load() && !baton_.exchange(true);
}

void Engine::release_baton() {
  for (;;) {
    wake_sleeper();
    baton_.store(false);
    if (inbox_.empty() || !try_baton()) return;
    take_inbox();
    transmit(clock_.now());
  }
}

Engine::Hold::Hold(Engine& engine) : engine_(engine) {
  engine_.waiting_holders_.fetch_add(1);
  while (engine_.baton_.load(std::memory_order_relaxed) || engine_.baton_.exchange(true))
    std::this_thread::yield();
  engine_.waiting_holders_.fetch_sub(1);
}

Engine::Hold::~Hold() {
  engine_.take_inbox();
  engine_.release_baton();
}

void Engine::hand_over() {
  // Either this sees the RNIC thread about to nap, or that sees the store.
  last_drive_.store(Time::min());
  if (napping_.load()) nap_.end_in(Duration::zero());
}

void Engine::unstall() {
  unstall_.store(true);
  if (sleepers_.load() != 0) poller_.wake();
}

void Engine::wake() {
  poked_.store(true);
  if (sleepers_.load() != 0) poller_.wake();
}

void Engine::sleep_until_work(Duration limit) {
  limit = exclusively([&] { return std::min(limit, begin_sleep(clock_.now())); });
  sleep(limit);
}

/// With the baton held until all is told: who holds it next knows whom it may have to wake, and
/// leaves all endpoints in the poller. Returns how long the sleep may last.
Duration Engine::begin_sleep(Time now) {
  bool all_watched = true;
  for (Endpoint* endpoint = hot_.front(); endpoint != nullptr; endpoint = hot_.next(*endpoint))
    if (!endpoint->always_hot_ && !endpoint->gathered_ && !watch(*endpoint)) all_watched = false;
  const Time until = next_turn(now);
  parked_until_.store(until);
  sleepers_.fetch_add(1);
  const Duration most = all_watched ? Duration::max() : kUnwatchedSleep;
  return std::clamp(until - now, Duration::zero(), most);
}

void Engine::sleep(Duration limit) {
  std::array<llp::PollEvent, 1> ignored;
  const bool news = poked_.exchange(false) || !inbox_.empty() || unstall_.load() || stop_.load();
  if (!news) poller_.wait(ignored, limit);
  sleepers_.fetch_sub(1);
}

}  // namespace diwarp::rnic
