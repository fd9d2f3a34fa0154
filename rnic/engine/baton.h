// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace diwarp::rnic {

/// The right to run an engine, which one thread has at a time. Threads that only try give way to
/// those that wait.
///
/// Sequentially consistent: a thread that leaves something for the holder and then fails to take
/// the baton knows that the holder will look after it has released it.
class Baton {
 public:
  bool try_take() { return waiting_.load() == 0 && !taken_.load() && !taken_.exchange(true); }
  void take() {
    waiting_.fetch_add(1);
    while (taken_.load(std::memory_order_relaxed) || taken_.exchange(true))
      std::this_thread::yield();
    waiting_.fetch_sub(1);
  }
  void release() { taken_.store(false); }
  /// Whether a thread waits in take().
  bool is_wanted() const { return waiting_.load(std::memory_order_relaxed) != 0; }

 private:
  std::atomic<bool> taken_{false};
  std::atomic<uint32_t> waiting_{0};
};

}  // namespace diwarp::rnic
