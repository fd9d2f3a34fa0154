// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/timer_queue.h"
#include "diwarp/address.h"
#include "diwarp/attributes.h"

namespace diwarp::rnic {

class Engine;

/// Tells the log of events that peers cause and counters count: drops at level debug, refusals and
/// want of memory at level info. Peers may cause many, so each counter has a line at once, and then
/// one a second that says how many more there were. With the baton.
class CounterLog {
 public:
  /// The time after a line of a counter in which there is no other one of it.
  static constexpr Duration kQuiet = std::chrono::seconds(1);

  CounterLog(Engine& engine, const std::string& device);
  ~CounterLog();
  CounterLog(const CounterLog&) = delete;
  CounterLog& operator=(const CounterLog&) = delete;

  /// `counter` went up, for something that `peer` did to the queue pair. `detail` may be empty.
  void tell(Counter counter, uint32_t qp_number, const Address& peer, std::string_view detail);

  static LogLevel level_of(Counter counter);
  const std::string& device() const { return device_; }

 private:
  struct Row {
    Time quiet_until = Time::min();
    uint64_t more = 0;  // events without a line
    // Of the last of these.
    uint32_t qp_number = 0;
    Address peer;
  };

  void on_quiet_over(Time now);
  void tell_more(Counter counter, Row& row, Time now);

  Engine& engine_;
  const std::string& device_;
  std::array<Row, Counters::count()> rows_{};
  MemberTimer<CounterLog, &CounterLog::on_quiet_over> timer_{*this};
};

/// The counters of a queue pair's device, and the log of what they count. The queue pair owns it,
/// and its parts refer to it. With the baton.
class LoggedCounters {
 public:
  /// Tells nothing.
  explicit LoggedCounters(Counters& counters) : counters_(counters) {}
  LoggedCounters(Counters& counters, CounterLog& log) : counters_(counters), log_(&log) {}
  LoggedCounters(const LoggedCounters&) = delete;
  LoggedCounters& operator=(const LoggedCounters&) = delete;

  /// Before the first line.
  void set_queue_pair(uint32_t number) { qp_number_ = number; }
  /// What the log calls the queue pair. Any thread.
  log::Subject subject() const {
    return log_ == nullptr ? log::Subject() : log::Subject{log_->device(), qp_number_};
  }

  void add(Counter counter) const { counters_.add(counter); }
  // Calls, and cold ones, so that the path of good messages saves no registers for them.
  [[gnu::cold, gnu::noinline]] void add(Counter counter, const Address& peer) const;
  /// `code`: what was wrong.
  [[gnu::cold, gnu::noinline]] void add(Counter counter, const Address& peer,
                                        const TerminateCode& code) const;

 private:
  void tell(Counter counter, const Address& peer, std::string_view detail) const;

  Counters& counters_;
  CounterLog* const log_ = nullptr;
  uint32_t qp_number_ = 0;
};

}  // namespace diwarp::rnic
