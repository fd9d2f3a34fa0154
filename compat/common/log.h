// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/log.h>

#include <string_view>

namespace diwarp::compat {

/// A line of these libraries' own, to where the library's lines go by default: DIWARP_LOG_FD's
/// descriptor, or standard error. Not shown below the level of the log.
void log_line(LogLevel level, std::string_view text) noexcept;

/// Throws Refusal(EOPNOTSUPP), after a line that names the call: one a process and call. `call` is
/// a literal.
[[noreturn]] void unsupported(const char* call);
/// The line alone; returns EOPNOTSUPP.
int log_unsupported(const char* call) noexcept;

}  // namespace diwarp::compat
