// SPDX-License-Identifier: Apache-2.0
#include "common/processes.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <optional>
#include <thread>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

[[noreturn]] void run_child(const std::function<void()>& child) {
  // A parent that is killed cannot clean up after itself.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  int status = 0;
  try {
    child();
  } catch (...) {
    status = 1;
  }
  std::fflush(nullptr);
  std::_Exit(status);
}

/// The forked process, ended and reaped at the latest with this object.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (!reap()) kill_and_reap();
  }

  /// Its wait status; nothing if it does not end within two seconds.
  std::optional<int> reap() {
    using std::chrono::milliseconds;
    const auto deadline = std::chrono::steady_clock::now() + milliseconds(2000);
    while (!status_ && std::chrono::steady_clock::now() < deadline) {
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
      if (!status_) std::this_thread::sleep_for(milliseconds(2));
    }
    return status_;
  }

 private:
  void kill_and_reap() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  pid_t pid_;
  std::optional<int> status_;
};

void require_success(std::optional<int> status) {
  if (!status) throw Failure("The other end's process did not end by itself.");
  if (WIFSIGNALED(*status)) {
    throw Failure("The other end's process was ended by signal " +
                  std::to_string(WTERMSIG(*status)) + ".");
  }
  if (WEXITSTATUS(*status) != 0) throw Failure("The other end failed after the run.");
}

}  // namespace

void run_processes(const std::vector<std::function<void()>>& children,
                   const std::function<void()>& parent) {
  std::fflush(nullptr);
  std::deque<Child> others;
  for (const std::function<void()>& child : children) {
    const pid_t pid = ::fork();
    if (pid < 0) throw Failure(std::string("Cannot fork: ") + std::strerror(errno) + ".");
    if (pid == 0) run_child(child);
    others.emplace_back(pid);
  }
  parent();
  for (Child& other : others) require_success(other.reap());
}

void bind_to_processor(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < CPU_SETSIZE) CPU_SET(static_cast<size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) {
    throw Failure("This process may not use processor " + std::to_string(cpu) +
                  ": nproc tells how many there are, counted from 0.");
  }
}

}  // namespace diwarp::tools
