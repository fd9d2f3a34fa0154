// SPDX-License-Identifier: Apache-2.0
#include "rnic/context/counter_log.h"

#include <algorithm>

#include "rnic/engine/engine.h"

namespace diwarp::rnic {

namespace {

std::string beginning(Counter counter, const Address& peer) {
  return std::string(Counters::name(counter)) + ", peer " + peer.to_string() + ": ";
}

}  // namespace

CounterLog::CounterLog(Engine& engine, const std::string& device)
    : engine_(engine), device_(device) {
  engine_.exclusively([this] { engine_.timers().add_places(1); });
}

CounterLog::~CounterLog() {
  engine_.exclusively([this] {
    engine_.timers().cancel(timer_);
    engine_.timers().remove_places(1);
  });
}

LogLevel CounterLog::level_of(Counter counter) {
  if (counter == Counter::drop_no_memory) return LogLevel::info;
  const bool drop = Counters::name(counter).starts_with("drop_");
  return drop || counter == Counter::rc_receive_not_ready ? LogLevel::debug : LogLevel::info;
}

void CounterLog::tell(Counter counter, uint32_t qp_number, const Address& peer,
                      std::string_view detail) {
  const LogLevel level = level_of(counter);
  if (!log::shows(level)) return;
  Row& row = rows_[static_cast<size_t>(counter)];
  const Time now = engine_.clock().now();
  if (now < row.quiet_until) {
    ++row.more;
    row.qp_number = qp_number;
    row.peer = peer;
    if (!timer_.armed() || row.quiet_until < timer_.deadline())
      engine_.timers().arm(timer_, row.quiet_until);
    return;
  }
  row.quiet_until = now + kQuiet;
  log::tell(level, {device_, qp_number}, [&] {
    std::string text = beginning(counter, peer).append(Counters::description(counter));
    if (!detail.empty()) text.append(" (").append(detail).append(")");
    return text;
  });
}

void CounterLog::on_quiet_over(Time now) {
  Time next = Time::max();
  for (size_t index = 0; index < rows_.size(); ++index) {
    Row& row = rows_[index];
    if (row.more == 0) continue;
    if (row.quiet_until <= now) tell_more(static_cast<Counter>(index), row, now);
    if (row.more != 0) next = std::min(next, row.quiet_until);
  }
  if (next != Time::max()) engine_.timers().arm(timer_, next);
}

void CounterLog::tell_more(Counter counter, Row& row, Time now) {
  const uint64_t more = std::exchange(row.more, 0);
  row.quiet_until = now + kQuiet;
  log::tell(level_of(counter), {device_, row.qp_number}, [&] {
    return beginning(counter, row.peer) + std::to_string(more) +
           " more since the last such line; this is the latest";
  });
}

void LoggedCounters::add(Counter counter, const Address& peer) const {
  counters_.add(counter);
  if (log::shows(LogLevel::info)) tell(counter, peer, {});
}

void LoggedCounters::add(Counter counter, const Address& peer, const TerminateCode& code) const {
  counters_.add(counter);
  if (!log::shows(LogLevel::info)) return;
  try {
    tell(counter, peer, to_string(code));
  } catch (...) {
    tell(counter, peer, {});
  }
}

void LoggedCounters::tell(Counter counter, const Address& peer, std::string_view detail) const {
  if (log_ != nullptr) log_->tell(counter, qp_number_, peer, detail);
}

}  // namespace diwarp::rnic
