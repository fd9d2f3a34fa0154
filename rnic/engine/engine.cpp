// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/engine.h"

#include <algorithm>
#include <thread>

namespace diwarp::rnic {

namespace {

/// When an engine has to run again though nothing comes: for a timer, or for an input queue.
Time next_turn(const TimerQueue& timers, const InputSet& inputs, Time now) {
  const Time turn = timers.next().value_or(Time::max());
  const Duration silence = inputs.silence();
  return silence < turn - now ? now + silence : turn;
}

}  // namespace

Engine::Engine(const DeviceOptions& options, const Clock& clock, Counters& counters,
               std::unique_ptr<TransmitScheduler> scheduler)
    : options_(options),
      clock_(clock),
      counters_(counters),
      inputs_(wait_, [this](TransmitSource& source) { transmits_.activate(source); }),
      transmits_(inbox_, inputs_, std::move(scheduler)),
      takeover_(options_, clock),
      idle_polls_(options_.yield_after) {
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

inline size_t Engine::end_step(Time began, bool busy) {
  const bool timed = control_turn_.restart();
  const size_t work = control_turn_.take(busy);
  if (timed) measure(began, busy || work != 0);
  return work;
}

size_t Engine::do_work(Time now) {
  size_t work = inbox_.empty() ? 0 : transmits_.take_inbox();
  // guard(rows:cq-overflow-apart): first if (transmits_.any_stalled()) return work;
  work += inputs_.receive(now);
  work += transmits_.transmit(now);
  work += timers_.run(now, kTimersPerStep);
  if (control_turn_.is_due()) [[unlikely]]
    work += end_step(now, work != 0);
  return work;
}

/// A step that only sends: of `first`, unless it is null, and all that stand in line.
inline void Engine::transmit(TransmitSource* first) {
  if (transmit_meter_.is_due()) [[unlikely]]
    measure_transmit(first);
  else
    transmit_at(clock_.now(), first);
}

inline size_t Engine::transmit_at(Time now, TransmitSource* first) {
  return first != nullptr ? transmits_.activate_and_transmit(*first, now)
                          : transmits_.transmit(now);
}

// Apart from the steps that are not timed, which would save registers for it.
[[gnu::noinline]] void Engine::measure_transmit(TransmitSource* first) {
  transmit_meter_.restart();
  const Time began = clock_.now();
  const size_t work = transmit_at(began, first);
  measure(began, work != 0);
}

[[gnu::noinline]] void Engine::measure(Time began, bool worked) {
  counters_.add(worked ? Meter::engine_work_ns : Meter::engine_idle_ns,
                WorkMeter::estimate(clock_.now() - began));
}

// --- The baton.

size_t Engine::poll_step() {
  const Time now = clock_.now();
  if (has_thread()) takeover_.stepped(now);  // nobody else asks
  size_t work = 0;
  if (baton_.try_take()) {
    work = do_work(now);
    release_baton();
  }
  if (idle_polls_.is_yield_due(now, work != 0)) [[unlikely]]
    std::this_thread::yield();
  return work;
}

void Engine::notify(TransmitSource& source) {
  if (baton_.try_take()) {
    transmit(&source);
  } else {
    inbox_.add(source);
    if (!baton_.try_take()) return;  // the holder looks into the inbox after it releases the baton
    transmits_.take_inbox();
    transmit();
  }
  release_baton();
}

void Engine::run_inbox() {
  while (inbox_.has_sources() && baton_.try_take()) {
    transmits_.take_inbox();
    transmit();
    pass_baton();
  }
}

Engine::BatonGuard::~BatonGuard() {
  if (!engine_.inbox_.empty()) engine_.transmits_.take_inbox();
  engine_.release_baton();
}

void Engine::unstall() {
  inbox_.unstall();
  wait_.interrupt();
}

// --- Waiting.

/// With the baton: work that this holder leaves must not wait with the thread that waits.
void Engine::wake_waiting_thread() {
  const bool idle = transmits_.empty() && inputs_.watch_announcing();
  wait_.wake_for(idle ? next_turn(timers_, inputs_, clock_.now()) : Time::min());
}

/// With the baton held until all is told. Returns how long the wait may last.
Duration Engine::begin_wait(Time now) {
  const bool all_watched = inputs_.watch_all();
  return wait_.begin_wait(now, next_turn(timers_, inputs_, now), all_watched);
}

void Engine::wait_for_work(Duration limit) {
  limit = exclusively([&] { return std::min(limit, begin_wait(clock_.now())); });
  wait_.wait(limit, !inbox_.empty());
}

// --- The RNIC thread.

/// Steps aside while the application drives. Else steps until another thread wants to; with nothing
/// to do for a while, waits until a descriptor, a timer or another thread has something.
void Engine::take_turn() {
  if (takeover_.application_drives(clock_.now())) return takeover_.park(thread_.stopping());
  if (!baton_.try_take()) return std::this_thread::yield();
  bool worked = false;
  Time last_work = clock_.now();
  inputs_.look_soon();  // it may be the poller that woke this thread
  for (;;) {
    const Time now = clock_.now();
    if (do_work(now) != 0) {
      last_work = now;
      worked = true;
    }
    const bool stops = thread_.stopping().load(std::memory_order_relaxed);
    if (baton_.is_wanted() || stops || takeover_.application_drives(now)) return release_baton();
    if (!transmits_.empty() || now - last_work < options_.spin) continue;
    if (worked) takeover_.served();
    const Duration limit = begin_wait(now);
    baton_.release();
    return wait_.wait(limit, !inbox_.empty() || thread_.stopping().load());
  }
}

}  // namespace diwarp::rnic
