// SPDX-License-Identifier: Apache-2.0
#include "common/cost.h"

#include <sys/resource.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace diwarp::tools {
namespace {

uint64_t microseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

}  // namespace

ProcessorTime processor_time() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return {.user_us = microseconds(usage.ru_utime), .system_us = microseconds(usage.ru_stime)};
}

ProcessorTime operator+(const ProcessorTime& a, const ProcessorTime& b) {
  return {.user_us = a.user_us + b.user_us, .system_us = a.system_us + b.system_us};
}

ProcessorTime operator-(const ProcessorTime& later, const ProcessorTime& earlier) {
  return {.user_us = later.user_us - earlier.user_us,
          .system_us = later.system_us - earlier.system_us};
}

Json in_seconds(const ProcessorTime& time) {
  return {{"user_s", static_cast<double>(time.user_us) / 1e6},
          {"system_s", static_cast<double>(time.system_us) / 1e6},
          {"total_s", static_cast<double>(time.user_us + time.system_us) / 1e6}};
}

Cost Meter::total() const {
  return {.processor = processor_time(),
          .overflowed = device_.counter("rx_overflow"),
          .zerocopy_sends = device_.counter("rc_zerocopy_sends")};
}

Cost Meter::cost() const {
  const Cost now = total();
  return {.processor = now.processor - start_.processor,
          .overflowed = now.overflowed - start_.overflowed,
          .zerocopy_sends = now.zerocopy_sends - start_.zerocopy_sends};
}

Json to_json(const Cost& cost) {
  return {{"user_us", cost.processor.user_us},
          {"system_us", cost.processor.system_us},
          {"overflowed", cost.overflowed},
          {"zerocopy_sends", cost.zerocopy_sends}};
}

Cost cost_in(const Json& message) {
  const auto number = [&](const char* name) { return number_in(message, name, 0, UINT64_MAX / 2); };
  return {.processor = {.user_us = number("user_us"), .system_us = number("system_us")},
          .overflowed = number("overflowed"),
          .zerocopy_sends = number("zerocopy_sends")};
}

Json processor_times(const Cost& client, const Cost& server) {
  return {{"client", in_seconds(client.processor)}, {"server", in_seconds(server.processor)}};
}

Json processor_times(const Cost& server) { return {{"server", in_seconds(server.processor)}}; }

std::string processor_text(const Json& row) {
  std::string text;
  for (const char* end : {"client", "server"}) {
    const Json::json_pointer total("/processor/" + std::string(end) + "/total_s");
    if (!row.contains(total) || !row[total].is_number()) continue;
    char number[32];
    const double seconds = row[total].get<double>();
    const int digits = seconds < 10 ? 2 : seconds < 100 ? 1 : 0;
    std::snprintf(number, sizeof number, "%.*f", digits, seconds);
    text += (text.empty() ? "" : "+") + std::string(number);
  }
  return text.empty() ? "-" : text;
}

}  // namespace diwarp::tools
