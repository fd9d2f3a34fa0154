// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_counters.h"

#include <atomic>
#include <cstdlib>
#include <string>

#include "compat/common/log.h"
#include "compat/common/settings.h"

namespace diwarp::compat {
namespace {

std::array<std::atomic<uint64_t>, kUdCounters.size()> values;

void print() {
  for (const UdCounterName& one : kUdCounters)
    if (const uint64_t value = value_of(one.counter); value != 0)
      log_line(LogLevel::error, "counter " + std::string(one.name) + " " + std::to_string(value));
}

}  // namespace

void count(UdCounter counter) { ++values[static_cast<size_t>(counter)]; }

uint64_t value_of(UdCounter counter) { return values[static_cast<size_t>(counter)]; }

void print_ud_counters_at_exit() {
  static const bool registered = settings().counters && std::atexit(print) == 0;
  static_cast<void>(registered);
}

}  // namespace diwarp::compat
