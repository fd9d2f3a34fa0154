// SPDX-License-Identifier: Apache-2.0
#include "common/child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

[[noreturn]] void run_child(pid_t parent, const std::function<int()>& body) {
  // A parent that is killed cannot clean up after itself. The signal tells of deaths to come.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(1);
  int status = 1;
  try {
    status = body();
  } catch (...) {
  }
  std::fflush(nullptr);
  std::_Exit(status);
}

}  // namespace

Child::Child(const std::function<int()>& body) {
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw Failure(std::string("Cannot fork: ") + std::strerror(errno) + ".");
  if (pid_ == 0) run_child(parent, body);
}

Child::~Child() {
  if (finished()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool Child::finish(Time deadline) {
  if (finished()) return true;
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  pid_ = -1;
  status_ = WIFSIGNALED(status) ? kSignalled + WTERMSIG(status) : WEXITSTATUS(status);
  return true;
}

}  // namespace diwarp::tools
