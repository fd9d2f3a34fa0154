// SPDX-License-Identifier: Apache-2.0
#include "llp/host_backlog.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <fstream>
#include <iterator>
#include <string>

namespace diwarp::llp {
namespace {

/// The second number of a line.
std::optional<uint64_t> drops_in_line(std::string_view line) {
  const size_t space = line.find(' ');
  if (space == 0 || space == std::string_view::npos) return std::nullopt;
  uint32_t drops = 0;
  const char* const begin = line.data() + space + 1;
  const char* const end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(begin, end, drops, 16);
  if (error != std::errc() || (rest != end && *rest != ' ')) return std::nullopt;
  return drops;
}

}  // namespace

std::optional<uint64_t> backlog_drops_in(std::string_view softnet_stat) {
  if (softnet_stat.empty()) return std::nullopt;
  uint64_t sum = 0;
  while (!softnet_stat.empty()) {
    const std::string_view line = softnet_stat.substr(0, softnet_stat.find('\n'));
    const std::optional<uint64_t> drops = drops_in_line(line);
    if (!drops) return std::nullopt;
    sum += *drops;
    softnet_stat.remove_prefix(std::min(line.size() + 1, softnet_stat.size()));
  }
  return sum;
}

uint64_t backlog_drops_of_host() noexcept try {
  std::ifstream file("/proc/net/softnet_stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return backlog_drops_in(text).value_or(0);
} catch (const std::exception&) {
  return 0;
}

}  // namespace diwarp::llp
