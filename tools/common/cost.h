// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>

#include <cstdint>

#include "common/control.h"

namespace diwarp::tools {

/// Processor time of this process, all of its threads together, since it began; in microseconds.
struct ProcessorTime {
  uint64_t user_us = 0;
  uint64_t system_us = 0;
};
ProcessorTime processor_time();
ProcessorTime operator+(const ProcessorTime& a, const ProcessorTime& b);
ProcessorTime operator-(const ProcessorTime& later, const ProcessorTime& earlier);

/// The cost of something at one end.
struct Cost {
  ProcessorTime processor;
  uint64_t overflowed = 0;      ///< datagrams that the kernel dropped for want of receive buffer
  uint64_t zerocopy_sends = 0;  ///< calls that gave bytes to the kernel without copying
};

/// Counts from when it is made on.
class Meter {
 public:
  explicit Meter(const Device& device) : device_(device), start_(total()) {}
  Cost cost() const;

 private:
  Cost total() const;

  const Device& device_;
  Cost start_;
};

/// As the ends tell it to each other. cost_in() throws Failure if it is none.
Json to_json(const Cost& cost);
Cost cost_in(const Json& message);

/// {"user_s", "system_s", "total_s"}.
Json in_seconds(const ProcessorTime& time);

/// As a row has it: {"client": {"user_s", "system_s", "total_s"}, "server": ...}.
Json processor_times(const Cost& client, const Cost& server);
/// The server's alone.
Json processor_times(const Cost& server);
/// "1.25+0.50": the totals that such a row has, the client's first; "-" if it has none.
std::string processor_text(const Json& row);

}  // namespace diwarp::tools
