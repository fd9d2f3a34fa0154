// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// What was dropped, repeated or given up while UD services were resolved. `diwarp-run --counters`
/// prints them at the end of a process.
namespace diwarp::compat {

enum class UdCounter : uint8_t {
  malformed,
  repeated,
  no_room,
  unknown_answer,
  sent_again,
  given_up,
  not_sent,
};

struct UdCounterName {
  UdCounter counter;
  std::string_view name;
};
inline constexpr std::array kUdCounters{
    UdCounterName{UdCounter::malformed, "ud_resolve_malformed"},  // no message of this protocol
    UdCounterName{UdCounter::repeated, "ud_resolve_repeated"},    // requests that had come before
    UdCounterName{UdCounter::no_room, "ud_resolve_no_room"},      // requests that were dropped
    UdCounterName{UdCounter::unknown_answer, "ud_resolve_unknown_answer"},
    UdCounterName{UdCounter::sent_again, "ud_resolve_sent_again"},  // requests of this process
    UdCounterName{UdCounter::given_up, "ud_resolve_given_up"},      // the same
    UdCounterName{UdCounter::not_sent, "ud_resolve_not_sent"},      // the send queue was full
};

void count(UdCounter counter);
uint64_t value_of(UdCounter counter);
/// Prints those above zero when the process ends, where the user asked for counters.
void print_ud_counters_at_exit();

}  // namespace diwarp::compat
