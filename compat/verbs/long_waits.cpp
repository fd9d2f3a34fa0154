// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/long_waits.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <thread>

#include "compat/common/signals_blocked.h"

namespace diwarp::compat {
namespace {

/// Between two looks, while waits begin and end, and where nothing happens.
constexpr std::chrono::milliseconds kShortest(20);
constexpr std::chrono::milliseconds kLongest(320);
/// After that long a wait ends in any case where the program has handlers of signals.
constexpr std::chrono::seconds kLongestSilence(1);

/// Whether a signal may have a handler of the program's, those apart that tell of its own faults.
bool catches_signals() {
  constexpr int kFaults[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTRAP};
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (std::find(std::begin(kFaults), std::end(kFaults), signal) != std::end(kFaults)) continue;
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0) continue;
    if (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN) return true;
  }
  return false;
}

}  // namespace

void LongWaits::add(WaitingChannel& channel) {
  const std::lock_guard lock(mutex_);
  channels_[&channel] = {};
}

void LongWaits::remove(WaitingChannel& channel) {
  if (!process_.is_own()) return;
  const std::lock_guard lock(mutex_);
  channels_.erase(&channel);
}

void LongWaits::watch() {
  if (watching_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  watching_ = true;
  if (!begun_) begin();
  wanted_.notify_one();
}

void LongWaits::begin() {
  const SignalsBlocked blocked;
  std::thread([this] { run(); }).detach();
  begun_ = true;
}

void LongWaits::run() {
  std::unique_lock lock(mutex_);
  for (auto pause = kShortest;;) {
    wanted_.wait(lock, [this] { return watching_.load(); });
    lock.unlock();
    std::this_thread::sleep_for(pause);
    lock.lock();
    pause = look() ? kShortest : std::min(2 * pause, kLongest);
  }
}

/// What comes while the program prepares a wait may come too late for it. So a wait is told of all
/// that came since the last look before it began. True if it began since the last look.
bool LongWaits::look_at(WaitingChannel& channel, Known& known, uint64_t received) {
  const auto now = std::chrono::steady_clock::now();
  const uint64_t begun = channel.waits_begun();
  if (begun != known.begun) {
    known = {begun, received_, now};
    return true;
  }
  if (!channel.waits()) return false;
  const bool for_signals = now - known.since >= kLongestSilence && catches_signals();
  if (known.received != received || for_signals) {
    known = {begun, received, now};
    channel.on_news();
  }
  return false;
}

bool LongWaits::anybody_waits() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const auto& one) { return one.first->waits(); });
}

/// True if something happened since the last look.
bool LongWaits::look() {
  const uint64_t received = device_.counter("rc_rx_bytes");
  bool happened = received != received_;
  for (auto& [channel, known] : channels_)
    if (look_at(*channel, known, received)) happened = true;
  received_ = received;
  if (happened || anybody_waits()) return happened;
  watching_ = false;
  if (anybody_waits()) watching_ = true;  // it saw the old value
  return false;
}

}  // namespace diwarp::compat
