// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "diwarp/error.h"

namespace diwarp::test {

/// Whether all threads of this process but the caller sleep. A child that allocates is forked only
/// then: AddressSanitizer leaves it the locks of the heap that others held for a moment.
inline bool others_sleep() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  const std::string own = std::to_string(::gettid());
  return std::all_of(begin(tasks), end(tasks), [&](const std::filesystem::path& task) {
    std::string stat;
    std::getline(std::ifstream(task / "stat"), stat);
    const size_t name_end = stat.rfind(')');
    return task.filename() == own || stat.empty() || stat.compare(name_end, 3, ") S") == 0;
  });
}

/// Whether a call is refused as one of a forked child.
template <class Call>
bool says_device_gone(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() == Errc::device_gone;
  } catch (...) {
  }
  return false;
}

/// Waits for that, but not for long: an RNIC thread may poll without end.
inline void let_others_sleep() {
  for (int tries = 0; tries < 1000 && !others_sleep(); ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

/// The result of `body` in a child process, where all that it sets stays; -1 if the child was
/// killed, or there was none. It runs no test macros, or catches what they throw.
template <class Body>
int in_child(Body&& body) {
  let_others_sleep();
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(body());
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace diwarp::test
