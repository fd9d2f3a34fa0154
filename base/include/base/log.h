// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "diwarp/log.h"

/// The lines of the log, from any thread (docs/logging.md). Nothing here throws or waits: a line
/// that cannot be composed or written is lost, and counted.
namespace diwarp::log {

/// What a line is about.
struct Subject {
  std::string_view device = {};  ///< empty: none in particular
  uint32_t qp_number = 0;        ///< 0: none in particular
};

namespace detail {

/// 0 until the environment was read; then 1 for trace and so on. Hidden, it is one instruction
/// away.
extern __attribute__((visibility("hidden"))) std::atomic<uint8_t> lowest;

/// Reads the environment, the first time.
[[gnu::cold]] bool shows(LogLevel level) noexcept;
/// In a catch block.
void count_lost() noexcept;

}  // namespace detail

/// Whether lines of this level are shown: one test where they are not.
inline bool shows(LogLevel level) noexcept {
  const auto number = static_cast<uint8_t>(static_cast<uint8_t>(level) + 1);
  if (detail::lowest.load(std::memory_order_relaxed) > number) [[likely]]
    return false;
  return detail::shows(level);
}

void write(LogLevel level, const Subject& subject, std::string_view message) noexcept;

/// Calls `compose` for the message if the line is shown.
template <class Compose>
void tell(LogLevel level, const Subject& subject, Compose&& compose) noexcept {
  if (!shows(level)) return;
  try {
    write(level, subject, std::string_view(compose()));
  } catch (...) {
    detail::count_lost();
  }
}

void debug(std::string_view message);
void info(std::string_view message);
void warn(std::string_view message);
void error(std::string_view message);

}  // namespace diwarp::log
