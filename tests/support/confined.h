// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

/// The rights that systems take from processes. For children: it lasts as long as the process.
namespace diwarp::test {

inline bool answer_io_uring_setup(uint32_t answer) {
  std::array<sock_filter, 4> program = {{
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_io_uring_setup},
      {BPF_RET | BPF_K, 0, 0, answer},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  }};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// No ring can be made: with EPERM as containers have it, with ENOMEM as kernels before 5.12 where
/// a ring is more than may be locked.
inline bool forbid_io_uring(int error = EPERM) {
  return answer_io_uring_setup(SECCOMP_RET_ERRNO | static_cast<uint32_t>(error));
}

/// A process that tries to make a ring is killed.
inline bool kill_who_makes_a_ring() { return answer_io_uring_setup(SECCOMP_RET_KILL_PROCESS); }

/// The least that systems let lock, and no privilege, for which there is no such limit.
inline bool limit_locked_memory() {
  constexpr uid_t kNobody = 65534;
  const rlimit limit{64 << 10, 64 << 10};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return false;
  return ::geteuid() != 0 || ::setresuid(kNobody, kNobody, kNobody) == 0;
}

}  // namespace diwarp::test
