// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string_view>

#include "diwarp/export.h"

namespace diwarp {

/// The levels of the log, each with those above it. The lowest that is shown is DIWARP_LOG's in the
/// environment (one of these words), until set_log_level(); without it, warn (docs/logging.md).
enum class LogLevel : uint8_t {
  trace,  ///< each message: posted, sent, received, completed
  debug,  ///< what is dropped, with the reason; at most once a second for each reason
  info,   ///< connections and peers come and go, fallbacks, refusals, memory that is not there
  warn,   ///< the system gives less than was asked for, or a wish is not followed
  error,  ///< something was lost, or cannot be ended
  off,    ///< no line is of this level: nothing is shown
};

/// One line of the log. What it points to is gone after the call.
struct LogRecord {
  LogLevel level = LogLevel::info;
  std::chrono::system_clock::time_point time;
  std::string_view device = {};  ///< its address; empty: no device in particular
  uint32_t qp_number = 0;        ///< 0: no queue pair in particular
  std::string_view message = {};
};

/// It is called by any thread that calls diwarp, and by diwarp's own, often with locks of the
/// library's held: it must not call diwarp, nor wait for a thread that does, and the engine waits
/// until it returns. Calls never overlap. A line that it throws at, or that comes while it runs in
/// the same thread, is lost, and counted.
using LogCallback = std::function<void(const LogRecord& record)>;

/// "trace", "debug", "info", "warn", "error" or "off".
DIWARP_EXPORT std::string_view to_string(LogLevel level);

/// For the whole process, from now on. Any thread.
DIWARP_EXPORT void set_log_level(LogLevel level) noexcept;
DIWARP_EXPORT LogLevel log_level() noexcept;

/// Lines go to the callback from now on, and to no descriptor; without one (the default argument of
/// std::function), to the descriptor as before. After the call the one before is not called any
/// more. Not from within a callback: throws Error(invalid_state).
DIWARP_EXPORT void set_log_callback(LogCallback callback);

/// Lines go to a copy of this descriptor from now on, and to no callback. At first that is
/// DIWARP_LOG_FD's in the environment; without it, stderr. Nothing waits for a descriptor, nor
/// raises SIGPIPE: a line that it does not take at once is lost, and the next one that it takes is
/// preceded by one that says how many were. -1: to stderr again. Throws Error where it is not open
/// for writing, and from within a callback.
DIWARP_EXPORT void set_log_descriptor(int descriptor);

/// Lines that were lost, ever.
DIWARP_EXPORT uint64_t log_lines_lost() noexcept;

}  // namespace diwarp
