// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

namespace diwarp::bridge {

/// Keeps a SIGPIPE that a call raises in this thread away from the application: siw sends without
/// MSG_NOSIGNAL, so that a post on a connection that the peer has reset would end the program. A
/// SIGPIPE that was pending before stays so, and the thread's signal mask is as before at the end.
class SigpipeGuard {
 public:
  /// Does nothing unless it may be raised, and matter.
  explicit SigpipeGuard(bool may_be_raised = true) : active_(may_be_raised) {
    if (active_) begin();
  }
  ~SigpipeGuard() {
    if (active_) end();
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  void begin();
  void end();

  bool active_;
  bool was_blocked_ = false;
};

/// Whether this process ignores SIGPIPE, so that nothing need be kept away.
bool ignores_sigpipe();

}  // namespace diwarp::bridge
