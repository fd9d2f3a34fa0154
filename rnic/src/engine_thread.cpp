// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include "base/log.h"
#include "rnic/engine.h"
#include "rnic/signals_blocked.h"

/// The RNIC thread's side of the engine: driving, stepping aside, sleeping.
namespace diwarp::rnic {

namespace {

void bind_to_processor(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  if (error != 0) log::warn("The RNIC thread could not be bound to its processor; it runs anywhere");
}

}  // namespace

Engine::Engine(const DeviceOptions& options, const Clock& clock, Counters& counters)
    : options_(options),
      clock_(clock),
      counters_(counters),
      events_(64),
      batch_(kReceiveSlots, kReceiveSlotBytes, kReceiveDatagrams),
      stream_buffer_(std::make_unique<std::byte[]>(kStreamBufferBytes)) {
  timers_.reserve(1024);
  if (options.progress != Progress::thread) return;
  SignalsBlocked blocked;
  thread_ = std::thread([this] { run_thread(); });
}

Engine::~Engine() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  nap_.wake();
  poller_.wake();
  thread_.join();
}

void Engine::run_thread() {
  ::pthread_setname_np(::pthread_self(), "diwarp-rnic");
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // ns: naps are to be short
  if (options_.cpu >= 0) bind_to_processor(options_.cpu);
  Duration nap = options_.takeover;
  while (!stop_.load()) {
    if (!application_drives(clock_.now())) {
      nap = options_.takeover;
      drive();
      continue;
    }
    watching_.store(true);
    const bool ended_early = application_drives(clock_.now()) && nap_.sleep(nap);
    watching_.store(false);
    const Duration limit = options_.takeover_limit;
    if (ended_early)
      nap = options_.takeover;
    else if (nap < limit)
      nap = nap < limit / 2 ? 2 * nap : limit;
  }
}

bool Engine::application_drives(Time now) const {
  const int64_t last = last_drive_.load();
  if (last == INT64_MIN) return false;
  // A nap lasts `takeover` or more: with half of it as the bound, the second look at the latest sees
  // that the application has stopped.
  return now - Time(Duration(last)) < options_.takeover / 2;
}

void Engine::drive() {
  if (!try_baton()) return std::this_thread::yield();
  Time last_work = clock_.now();
  steps_since_look_ = kStepsPerLook;  // it may be the poller that woke us
  for (;;) {
    const Time now = clock_.now();
    if (do_work(now) != 0) last_work = now;
    const bool wanted = waiting_holders_.load(std::memory_order_relaxed) != 0;
    if (wanted || stop_.load(std::memory_order_relaxed) || application_drives(now)) break;
    if (active_.empty() && now - last_work >= options_.spin) return park(now);
  }
  release_baton();
}

/// Gives the baton back and sleeps until a descriptor, a timer or another thread has something.
void Engine::park(Time now) {
  const Duration limit = begin_sleep(now);
  baton_.store(false);
  sleep(limit);
}

/// When the engine has to run again though nothing comes: for a timer, or for its input queue.
Time Engine::next_turn(Time now) {
  const Time turn = timers_.next().value_or(Time::max());
  const Duration silence = input_queue_ == nullptr ? Duration::max() : input_queue_->silence();
  return silence < turn - now ? now + silence : turn;
}

/// With the baton: what this holder leaves to be done must not sleep with who sleeps.
void Engine::wake_sleeper() {
  if (sleepers_.load(std::memory_order_relaxed) == 0) return;
  const bool earlier = next_turn(clock_.now()).time_since_epoch().count() < parked_until_.load();
  if (earlier || !active_.empty()) poller_.wake();
}

}  // namespace diwarp::rnic
