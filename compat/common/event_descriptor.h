// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "compat/common/process.h"

namespace diwarp::compat {

/// Whether reading from a descriptor that a program has waits: it may have set O_NONBLOCK.
bool may_wait(int descriptor);

/// A descriptor that counts tokens and is handed out: the program may poll it, put it into epoll,
/// duplicate it and set O_NONBLOCK, which decides whether take() waits. It must not read from it.
/// The tokens are the parent's in a forked child, where they are neither put nor taken.
class EventDescriptor {
 public:
  /// Throws Refusal with the system's errno.
  EventDescriptor();
  ~EventDescriptor();
  EventDescriptor(const EventDescriptor&) = delete;
  EventDescriptor& operator=(const EventDescriptor&) = delete;

  int get() const { return descriptor_; }
  void put(uint64_t tokens = 1);
  /// Takes one token; waits for it unless O_NONBLOCK is set. Throws Refusal(EAGAIN), (EINTR) where
  /// a signal's handler does not ask for a restart, or (ENODEV) in a forked child.
  void take();
  /// Takes one token if there is one, and never waits. Where the kernel cannot do that (before
  /// Linux 5.8) the token stays.
  void absorb();

 private:
  const Process process_;
  int descriptor_;
};

}  // namespace diwarp::compat
