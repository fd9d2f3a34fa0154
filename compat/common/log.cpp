// SPDX-License-Identifier: Apache-2.0
#include "compat/common/log.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>

#include "compat/common/error.h"
#include "compat/common/immortal.h"

namespace diwarp::compat {
namespace {

int descriptor() {
  const char* const given = std::getenv("DIWARP_LOG_FD");
  const int number = given != nullptr ? std::atoi(given) : 0;
  return number > 0 ? number : STDERR_FILENO;
}

/// True for the first time that a process names this call.
bool first_time(const char* call) {
  static Immortal<std::mutex> mutex;
  static Immortal<std::set<std::string>> named;
  const std::lock_guard lock(*mutex);
  return named->insert(call).second;
}

}  // namespace

void log_line(LogLevel level, std::string_view text) noexcept {
  if (level < log_level()) return;
  try {
    const std::string line =
        "diwarp " + std::string(to_string(level)) + ": " + std::string(text) + "\n";
    [[maybe_unused]] const ssize_t written = ::write(descriptor(), line.data(), line.size());
  } catch (...) {  // no memory for a line: it is lost
  }
}

int log_unsupported(const char* call) noexcept {
  try {
    if (first_time(call))
      log_line(LogLevel::warn, std::string(call) +
                                   " is not supported over diwarp (docs/drop-in.md has the list); "
                                   "the program gets EOPNOTSUPP");
  } catch (...) {
  }
  return EOPNOTSUPP;
}

void unsupported(const char* call) { throw Refusal(log_unsupported(call)); }

}  // namespace diwarp::compat
