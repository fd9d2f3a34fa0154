// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>

#include "base/log.h"
#include "rnic/engine/engine.h"
#include "rnic/engine/signals_blocked.h"

/// The RNIC thread's side of the engine: driving, stepping aside, sleeping.
namespace diwarp::rnic {

namespace {

void bind_to_processor(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  if (error != 0)
    log::warn("The RNIC thread could not be bound to its processor; it runs anywhere");
}

/// After how much of a nap it is put off. The rest is for an application that is held up, and for
/// the longest pause between two steps with which it still drives.
Duration until_put_off(Duration nap, Duration takeover) {
  return nap - std::max(nap / 8, takeover / 2);
}

}  // namespace

Engine::Engine(const DeviceOptions& options, const Clock& clock, Counters& counters)
    : options_(options),
      clock_(clock),
      counters_(counters),
      events_(64),
      batch_(kReceiveSlots, kReceiveSlotBytes, kReceiveDatagrams),
      stream_buffer_(std::make_unique<std::byte[]>(kStreamBufferBytes)) {
  timers_.add_places(1024);
  if (options.progress != Progress::thread) return;
  SignalsBlocked blocked;
  thread_ = std::thread([this] { run_thread(); });
}

Engine::~Engine() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  nap_.end_in(Duration::zero());
  poller_.wake();
  thread_.join();
}

void Engine::run_thread() {
  ::pthread_setname_np(::pthread_self(), "diwarp-rnic");
  ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // ns: naps are to be short
  if (options_.cpu >= 0) bind_to_processor(options_.cpu);
  while (!stop_.load()) {
    if (application_drives(clock_.now()))
      nap();
    else
      drive();
  }
}

/// Steps aside while the application drives, which puts the end of the nap off for as long.
void Engine::nap() {
  napping_.store(true);
  nap_length_.store(options_.takeover);
  nap_.end_in(options_.takeover);
  const Time now = clock_.now();
  put_off_nap_at_.store(now + until_put_off(options_.takeover, options_.takeover));
  // Either this sees that the application hands over, or stops, or that sees the nap.
  if (application_drives(now) && !stop_.load()) nap_.sleep();
  put_off_nap_at_.store(Time::max());
  napping_.store(false);
}

/// The application steps when it is time to put the nap off. Where it had paused before, the RNIC
/// thread is to look instead whether it goes on.
void Engine::put_off_nap(Time now, Time last_drive) {
  Time due = put_off_nap_at_.load();
  if (now < due) return;  // another thread was quicker, or the nap has ended
  const Duration last = nap_length_.load();
  const Duration longest = std::max(options_.takeover, options_.takeover_limit);
  const Duration length = last < longest / 2 ? 2 * last : longest;
  const bool drives = is_driving(now, last_drive);
  const Time next = drives ? now + until_put_off(length, options_.takeover) : Time::max();
  if (!put_off_nap_at_.compare_exchange_strong(due, next) || !drives) return;
  nap_length_.store(length);
  nap_.end_in(length);
}

bool Engine::application_drives(Time now) const { return is_driving(now, last_drive_.load()); }

/// Who polls without a pause comes back much sooner.
bool Engine::is_driving(Time now, Time last_drive) const {
  return last_drive != Time::min() && now - last_drive < options_.takeover / 2;
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
  const bool earlier = next_turn(clock_.now()) < parked_until_.load();
  if (earlier || !active_.empty()) poller_.wake();
}

}  // namespace diwarp::rnic
