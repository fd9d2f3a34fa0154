// SPDX-License-Identifier: Apache-2.0
#include "compare/captured.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "common/failure.h"
#include "common/interrupt.h"
#include "common/processes.h"

namespace diwarp::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Nobody waits longer before the user's interrupt is seen.
constexpr Duration kSlice = milliseconds(100);

int run_body(int cpu, int output, const std::function<int()>& body) {
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  try {
    bind_to_processor(cpu);
    return body();
  } catch (const std::exception& reason) {
    std::fprintf(stderr, "%s\n", reason.what());
    return 1;
  }
}

int execute(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::signal(SIGPIPE, SIG_DFL);  // which run_program() ignores
  ::execvp(arguments[0], arguments.data());
  return 127;
}

}  // namespace

Captured::Captured(int cpu, const std::function<int()>& body) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Failure("Cannot make a pipe.");
  pipe_.reset(ends[0]);
  ::fcntl(pipe_.get(), F_SETFL, O_NONBLOCK);
  const UniqueFd output(ends[1]);
  child_.emplace([&] { return run_body(cpu, output.get(), body); });
}

Captured::Captured(int cpu, const std::vector<std::string>& command)
    : Captured(cpu, [&] { return execute(command); }) {}

/// True once its end of the pipe is closed.
bool Captured::read_output(Time deadline) {
  char buffer[4096];
  while (true) {
    const ssize_t got = ::read(pipe_.get(), buffer, sizeof buffer);
    if (got == 0) return true;
    if (got > 0) {
      output_.append(buffer, static_cast<size_t>(got));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return true;
    check_interrupted();
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left <= milliseconds(0)) return false;
    pollfd readable{.fd = pipe_.get(), .events = POLLIN, .revents = 0};
    ::poll(&readable, 1, static_cast<int>(std::min<Duration>(left, kSlice) / milliseconds(1)));
  }
}

bool Captured::finish(Time deadline) {
  return finished() || (read_output(deadline) && child_->finish(deadline));
}

bool is_installed(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace diwarp::tools
