// SPDX-License-Identifier: Apache-2.0
#include "compat/common/settings.h"

#include <diwarp/error.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "compat/common/immortal.h"
#include "compat/common/log.h"

namespace diwarp::compat {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

std::optional<NamedDevice> parse_device(std::string_view entry) {
  const size_t sign = entry.find('=');
  if (sign == std::string_view::npos || sign == 0) return std::nullopt;
  try {
    return NamedDevice{std::string(entry.substr(0, sign)),
                       Address::parse(entry.substr(sign + 1)).with_port(0)};
  } catch (const Error&) {
    return std::nullopt;
  }
}

Settings read() {
  Settings found;
  found.devices = parse_devices(variable("DIWARP_RUN_DEVICES"));
  found.spin = parse_duration(variable("DIWARP_RUN_SPIN"));
  const std::string_view cpu = variable("DIWARP_RUN_CPU");
  std::from_chars(cpu.data(), cpu.data() + cpu.size(), found.cpu);
  found.reliable_datagrams = variable("DIWARP_RUN_UD") == "reliable";
  const std::string_view rate = variable("DIWARP_RUN_UD_RATE");
  std::from_chars(rate.data(), rate.data() + rate.size(), found.datagram_rate);
  if (const std::string_view wait = variable("DIWARP_RUN_RECEIVE_WAIT"); !wait.empty())
    found.receive_wait = parse_duration(wait);
  found.crc = variable("DIWARP_RUN_CRC") == "1";
  found.counters = variable("DIWARP_RUN_COUNTERS") == "1";
  return found;
}

}  // namespace

std::vector<NamedDevice> parse_devices(std::string_view text) {
  std::vector<NamedDevice> found;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    if (auto device = parse_device(entry))
      found.push_back(std::move(*device));
    else if (!entry.empty())
      log_line(LogLevel::warn, "\"" + std::string(entry) + "\" is no device: it is NAME=ADDRESS");
    text = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  }
  return found;
}

Duration parse_duration(std::string_view text) {
  int64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 0 || number > 1'000'000'000) return Duration::zero();
  const std::string_view unit(rest, static_cast<size_t>(text.data() + text.size() - rest));
  if (unit == "s") return std::chrono::seconds(number);
  if (unit == "ms") return std::chrono::milliseconds(number);
  if (unit == "us" || unit.empty()) return std::chrono::microseconds(number);
  return unit == "ns" ? Duration(number) : Duration::zero();
}

const Settings& settings() {
  static Immortal<Settings> of_process(read());
  return *of_process;
}

}  // namespace diwarp::compat
