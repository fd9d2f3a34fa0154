// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "compat/common/process.h"

namespace diwarp::compat {

/// A channel whose threads wait for events, as LongWaits looks at it.
class WaitingChannel {
 public:
  /// Peers sent something while a thread waits, and no event came, or it waits for very long. Must
  /// not wait for anything.
  virtual void on_news() = 0;
  uint64_t waits_begun() const { return begun_.load(); }
  bool waits() const { return waiting_.load() != 0; }

  /// A thread that waits, while this lives.
  class Wait {
   public:
    explicit Wait(WaitingChannel& channel) : channel_(channel) {
      ++channel_.begun_;
      ++channel_.waiting_;
    }
    ~Wait() { --channel_.waiting_; }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

   private:
    WaitingChannel& channel_;
  };

 protected:
  ~WaitingChannel() = default;

 private:
  std::atomic<uint64_t> begun_{0};
  std::atomic<uint32_t> waiting_{0};
};

/// Some programs sleep for a completion event while they wait for memory that the peer is to write:
/// perftest counts the receives of an iWARP peer so. Adapters raise no event for a Write, and where
/// it comes a moment too late, such a program never wakes. So waits that last are looked at from
/// time to time, by a thread that begins with the first wait.
///
/// Others end a wait by a signal, whose handler sets a variable that they look at before they wait:
/// qperf does at the end of each test. A signal that comes in between ends no wait. So one that
/// lasts ends now and then although nothing happened, where the program has handlers of signals.
class LongWaits {
 public:
  explicit LongWaits(const diwarp::Device& device) : device_(device) {}
  LongWaits(const LongWaits&) = delete;
  LongWaits& operator=(const LongWaits&) = delete;

  void add(WaitingChannel& channel);
  /// on_news() is not called after that, nor at all in a forked child, where nothing is done.
  void remove(WaitingChannel& channel);
  /// Before a thread waits.
  void watch();

 private:
  /// What was known at the last look.
  struct Known {
    uint64_t begun = 0;     // waits
    uint64_t received = 0;  // bytes that peers had sent, before the present wait began
    std::chrono::steady_clock::time_point since{};  // it has known that
  };

  void begin();
  void run();
  bool look();
  bool look_at(WaitingChannel& channel, Known& known, uint64_t received);
  bool anybody_waits() const;

  const Process process_;
  const diwarp::Device& device_;
  std::atomic<bool> watching_{false};  // the thread looks by itself
  std::mutex mutex_;                   // guards what follows
  std::condition_variable wanted_;
  bool begun_ = false;
  uint64_t received_ = 0;  // bytes that peers had sent at the last look
  std::unordered_map<WaitingChannel*, Known> channels_;
};

}  // namespace diwarp::compat
