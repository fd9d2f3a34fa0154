// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "compat/common/error.h"
#include "compat/common/export.h"

namespace diwarp::compat {

namespace shared {
/// The first process, of this one and those that it was forked from, that has begun something; 0:
/// none has. libibverbs.so.1 has it for both libraries.
DIWARP_COMPAT_EXPORT std::atomic<pid_t>& process_of_use();
}  // namespace shared

/// A member that tells an object whether it lives in a forked child of the process that uses it:
/// what both have, as descriptors, must not be touched there. A program may make such objects, fork
/// before anything of the library's has begun, and go on in the child, as daemons do.
class Process {
 public:
  Process() : made_by_(::getpid()) {}
  bool is_own() const {
    const pid_t now = ::getpid();
    const pid_t used_by = shared::process_of_use().load();
    return made_by_ == now || used_by == now || used_by == 0;
  }
  /// Throws Refusal(ENODEV) in a forked child.
  void check() const { refuse_if(!is_own(), ENODEV); }

  /// This process has begun something that forked children do not have: a thread of the library's.
  static void begin_use() {
    pid_t nobody = 0;
    shared::process_of_use().compare_exchange_strong(nobody, ::getpid());
  }

 private:
  const pid_t made_by_;
};

}  // namespace diwarp::compat
