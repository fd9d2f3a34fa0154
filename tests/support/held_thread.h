// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>
#include <utility>

#include "support/catch.h"

namespace diwarp::test {

/// A thread that runs `body` and then stands still in the kernel, where not even completions of its
/// requests interrupt it, until a moment after release().
class HeldThread {
 public:
  template <class Body>
  explicit HeldThread(Body body) {
    REQUIRE(::pipe2(held_.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(released_.data(), O_CLOEXEC) == 0);
    thread_ = std::thread([this, body = std::move(body)] {
      body();
      has_run_ = true;
      hold();
    });
    if (!is_held()) {
      release();
      thread_.join();  // what `body` does is the case's to bound
      close_pipes();
      FAIL("the thread could not be held");
    }
    REQUIRE(has_run_);
  }
  ~HeldThread() {
    release();
    thread_.join();
    close_pipes();
  }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  void release() {
    if (released_[1] >= 0) ::close(std::exchange(released_[1], -1));
  }

 private:
  static constexpr char kHeld = 1;
  static constexpr char kNoChild = 2;

  bool is_held() {
    char told = 0;
    pollfd poll{held_[0], POLLIN, 0};
    return ::poll(&poll, 1, 60'000) == 1 && ::read(held_[0], &told, 1) == 1 && told == kHeld;
  }
  void close_pipes() {
    for (const int fd : {held_[0], held_[1], released_[0]}) ::close(fd);
  }

  /// The parent of such a child stands still until that has ended. The child shares the
  /// descriptors, so that it keeps none open, but no memory, and makes bare system calls only,
  /// since other threads may have held any lock.
  void hold() {
    constexpr int kFlags = CLONE_VFORK | CLONE_FILES | SIGCHLD;
    const long child = ::syscall(SYS_clone, kFlags, nullptr, nullptr, nullptr, 0L);
    if (child == 0) {
      char byte = kHeld;
      const timespec moment{0, 20'000'000};
      ::syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
      ::syscall(SYS_write, held_[1], &byte, 1L);
      ::syscall(SYS_read, released_[0], &byte, 1L);
      ::syscall(SYS_nanosleep, &moment, nullptr);
      ::syscall(SYS_exit_group, 0);
    }
    if (child > 0) ::waitpid(static_cast<pid_t>(child), nullptr, 0);
    if (child < 0) [[maybe_unused]]
      const auto told = ::write(held_[1], &kNoChild, 1);
  }

  std::array<int, 2> held_{-1, -1};
  std::array<int, 2> released_{-1, -1};
  std::atomic<bool> has_run_{false};
  std::thread thread_;
};

}  // namespace diwarp::test
