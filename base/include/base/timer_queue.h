// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace diwarp {

/// A deadline that lives inside the object that waits for it. Cancel it before it dies.
class Timer {
 public:
  using Fire = void (*)(Timer& timer, Time now);

  explicit Timer(Fire fire) : fire_(fire) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { assert(!armed()); }

  bool armed() const { return position_ != kIdle; }
  /// When it fires, or fired last.
  Time deadline() const { return deadline_; }

 private:
  friend class TimerQueue;
  static constexpr size_t kIdle = SIZE_MAX;

  Fire fire_;
  Time deadline_{};
  size_t position_ = kIdle;  // in the queue's heap
};

/// A timer that calls a member function of its owner: MemberTimer<Qp, &Qp::on_timeout> t{*this}.
template <class Owner, void (Owner::*Method)(Time now)>
class MemberTimer : public Timer {
 public:
  explicit MemberTimer(Owner& owner) : Timer(&call), owner_(owner) {}

 private:
  static void call(Timer& timer, Time now) {
    (static_cast<MemberTimer&>(timer).owner_.*Method)(now);
  }
  Owner& owner_;
};

/// The armed timers of one engine, as a binary heap: arm, re-arm and cancel take O(log n). For one
/// thread. Does not allocate while no more timers are armed than there are places for.
class TimerQueue {
 public:
  TimerQueue() = default;
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;
  ~TimerQueue();

  /// Makes places for so many timers more, on behalf of their owner, which gives them back when
  /// they are gone: so arm() need not allocate, and cannot fail.
  void add_places(size_t timers);
  void remove_places(size_t timers) { places_ -= timers; }

  /// Arms `timer`, or moves it when it is armed (here) already.
  void arm(Timer& timer, Time deadline);

  /// Nothing happens when it is idle.
  void cancel(Timer& timer);

  /// Fires timers with deadline <= now, earliest first, at most `limit`; returns how many. A timer
  /// is idle when it fires, and the callback may arm, cancel or destroy any timer, itself included.
  size_t run(Time now, size_t limit = SIZE_MAX) {
    return heap_.empty() || heap_.front().deadline > now ? 0 : fire(now, limit);
  }

  /// The earliest deadline.
  std::optional<Time> next() const {
    if (heap_.empty()) return std::nullopt;
    return heap_.front().deadline;
  }

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }

 private:
  // The deadline stands here too, so that comparing does not touch the timers' cache lines.
  struct Entry {
    Time deadline;
    Timer* timer;
  };

  size_t fire(Time now, size_t limit);
  void place(size_t position, Entry entry);
  void sift_up(size_t position, Entry entry);
  void sift_down(size_t position, Entry entry);
  void restore(size_t position, Entry entry);
  void remove_at(size_t position);

  std::vector<Entry> heap_;
  size_t places_ = 0;
};

}  // namespace diwarp
