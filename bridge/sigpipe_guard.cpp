// SPDX-License-Identifier: Apache-2.0
#include "bridge/sigpipe_guard.h"

#include <cerrno>
#include <ctime>

namespace diwarp::bridge {
namespace {

sigset_t sigpipe_alone() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  return set;
}

bool sigpipe_is_pending() {
  sigset_t pending;
  return ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

bool ignores_sigpipe() {
  struct sigaction action {};
  return ::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void SigpipeGuard::begin() {
  const sigset_t set = sigpipe_alone();
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  was_blocked_ = ::sigismember(&before, SIGPIPE) == 1;
  // Another one would merge with it, so that there is nothing to take away.
  if (was_blocked_ && sigpipe_is_pending()) active_ = false;
}

void SigpipeGuard::end() {
  const int error = errno;  // of the guarded call
  const sigset_t set = sigpipe_alone();
  constexpr timespec kNoWait{};
  ::sigtimedwait(&set, nullptr, &kNoWait);
  if (!was_blocked_) ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  errno = error;
}

}  // namespace diwarp::bridge
