// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/engine.h"

#include <algorithm>
#include <thread>

namespace diwarp::rnic {

Engine::Engine(const DeviceOptions& options, const Clock& clock, Counters& counters,
               std::unique_ptr<TransmitScheduler> scheduler)
    : options_(options),
      clock_(clock),
      counters_(counters),
      inputs_(wait_, [this](TransmitSource& source) { activate(source); }),
      scheduler_(scheduler ? std::move(scheduler) : std::make_unique<RoundRobin>()),
      takeover_(options_, clock) {
  timers_.add_places(1024);
  if (options.progress == Progress::thread) thread_.start([this] { take_turn(); }, options.cpu);
}

Engine::~Engine() {
  thread_.stop([this] {
    takeover_.end_park();
    wait_.poller().wake();
  });
}

// --- A step.

size_t Engine::do_work(Time now) {
  size_t work = take_inbox();
  // guard(rows:cq-overflow-apart): first if (stalled_.front() != nullptr) return work;
  work += inputs_.receive(now);
  work += transmit(now);
  work += timers_.run(now, kTimersPerStep);
  return work + control_turn_.take(work != 0);
}

size_t Engine::drain_inbox() {
  // guard(completion): without while (TransmitSource* source = stalled_.front()) activate(*source);
  if (unstall_.load(std::memory_order_relaxed) && unstall_.exchange(false))
    while (TransmitSource* source = stalled_.front()) activate(*source);
  return inbox_.drain([this](MpscNode& node) {
    auto& source = static_cast<TransmitSource&>(node);
    source.notified_.store(false);
    activate(source);
  });
}

size_t Engine::transmit(Time now) {
  size_t work = 0;
  TransmitSource* source = scheduler_->begin_round();
  while (source != nullptr) {
    const size_t moved = serve(*source, now);
    work += moved;
    source = scheduler_->next(*source, moved);
  }
  return work;
}

size_t Engine::serve(TransmitSource& source, Time now) {
  const Served served = source.transmit(now);
  if (!source.attached_) return served.work;
  if (served.work != 0 && source.input_ != nullptr) inputs_.expect_input(*source.input_);
  const bool waits_for_link = served.pending == Pending::writable && source.input_ != nullptr &&
                              inputs_.watch_until_writable(*source.input_);
  if (served.pending == Pending::stalled)
    stall(source);
  else if (served.pending != Pending::nothing && !waits_for_link)
    activate(source);
  return served.work;
}

void Engine::activate(TransmitSource& source) {
  if (!source.attached_) return;
  end_stall(source);
  if (!source.is_scheduled()) scheduler_->add(source);
}

void Engine::stall(TransmitSource& source) {
  if (!source.attached_ || source.linked()) return;
  source.stalled_ = true;
  stalled_.push_back(source);
}

void Engine::end_stall(TransmitSource& source) {
  if (!source.stalled_) return;
  source.stalled_ = false;
  stalled_.remove(source);
}

// --- Endpoints come and go.

void Engine::attach(Endpoint& endpoint, int descriptor, llp::InputQueue* queue) {
  inputs_.attach(endpoint, &endpoint, descriptor, queue);
  attach(static_cast<TransmitSource&>(endpoint));
  endpoint.input_ = &endpoint;
}

void Engine::detach(Endpoint& endpoint) {
  detach(static_cast<TransmitSource&>(endpoint));
  detach(static_cast<InputSource&>(endpoint));
}

void Engine::detach(TransmitSource& source) {
  if (!source.attached_) return;
  take_inbox();  // it may be in there
  source.attached_ = false;
  end_stall(source);
  scheduler_->remove(source);
}

// --- The baton.

size_t Engine::poll_step() {
  const Time now = clock_.now();
  takeover_.stepped(now);
  if (!baton_.try_take()) return 0;
  const size_t work = do_work(now);
  release_baton();
  return work;
}

void Engine::notify(TransmitSource& source) {
  if (baton_.try_take()) {
    activate(source);
  } else {
    if (!source.notified_.exchange(true)) inbox_.push(source);
    if (!baton_.try_take()) return;  // the holder looks into the inbox after it releases the baton
    take_inbox();
  }
  transmit(clock_.now());
  release_baton();
}

void Engine::run_inbox() {
  while (!inbox_.empty() && baton_.try_take()) {
    drain_inbox();
    transmit(clock_.now());
    pass_baton();
  }
}

Engine::BatonGuard::~BatonGuard() {
  engine_.take_inbox();
  engine_.release_baton();
}

void Engine::unstall() {
  unstall_.store(true);
  wait_.interrupt();
}

// --- Waiting.

/// With the baton: work that this holder leaves must not wait with the thread that waits.
void Engine::wake_waiting_thread() {
  wait_.wake_for(scheduler_->empty() ? next_turn(clock_.now()) : Time::min());
}

/// When the engine has to run again though nothing comes: for a timer, or for an input queue.
Time Engine::next_turn(Time now) {
  const Time turn = timers_.next().value_or(Time::max());
  const Duration silence = inputs_.silence();
  return silence < turn - now ? now + silence : turn;
}

/// With the baton held until all is told. Returns how long the wait may last.
Duration Engine::begin_wait(Time now) {
  const bool all_watched = inputs_.watch_all();
  return wait_.begin_wait(now, next_turn(now), all_watched);
}

void Engine::wait(Duration limit) {
  wait_.wait(limit, !inbox_.empty() || unstall_.load() || thread_.stopping().load());
}

void Engine::wait_for_work(Duration limit) {
  limit = exclusively([&] { return std::min(limit, begin_wait(clock_.now())); });
  wait(limit);
}

// --- The RNIC thread.

void Engine::take_turn() {
  if (takeover_.application_drives(clock_.now()))
    takeover_.park(thread_.stopping());
  else
    drive();
}

/// Steps until another thread wants to; with nothing to do for a while, waits until a descriptor, a
/// timer or another thread has something.
void Engine::drive() {
  if (!baton_.try_take()) return std::this_thread::yield();
  Time last_work = clock_.now();
  inputs_.look_soon();  // it may be the poller that woke this thread
  for (;;) {
    const Time now = clock_.now();
    if (do_work(now) != 0) last_work = now;
    const bool stops = thread_.stopping().load(std::memory_order_relaxed);
    if (baton_.is_wanted() || stops || takeover_.application_drives(now)) return release_baton();
    if (!scheduler_->empty() || now - last_work < options_.spin) continue;
    const Duration limit = begin_wait(now);
    baton_.release();
    return wait(limit);
  }
}

}  // namespace diwarp::rnic
