// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/rnic_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/log.h"
#include "base/signals_blocked.h"

namespace diwarp::rnic {

namespace {

/// As of sched_setattr(2); the C library has it since glibc 2.41.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime = 0;  // ns; of SCHED_OTHER: the slice, since Linux 6.12
  uint64_t deadline = 0;
  uint64_t period = 0;
};

/// A thread of shorter slices that wakes up is run before one that computes, which without this
/// keeps its processor for the rest of its own slice, some milliseconds. Earlier kernels do not
/// know it, and nothing is lost.
void ask_for_short_slices() {
  SchedulingAttributes attributes;
  if (::syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  if (attributes.policy != SCHED_OTHER) return;
  attributes.runtime = 100'000;  // the shortest
  ::syscall(SYS_sched_setattr, 0, &attributes, 0);
}

void bind_to_processor(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(processor), &set);
  const int error = ::pthread_setaffinity_np(::pthread_self(), sizeof set, &set);
  if (error != 0)
    log::warn("The RNIC thread could not be bound to its processor; it runs anywhere");
}

}  // namespace

void RnicThread::start(std::function<void()> turn, int cpu) {
  const SignalsBlocked blocked;
  thread_ = std::thread([this, turn = std::move(turn), cpu] {
    ::pthread_setname_np(::pthread_self(), "diwarp-rnic");
    ::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // ns: timed parks are to be short
    ask_for_short_slices();
    if (cpu >= 0) bind_to_processor(cpu);
    while (!stop_.load()) turn();
  });
}

void RnicThread::stop(const std::function<void()>& wake) {
  if (!thread_.joinable()) return;
  stop_.store(true);
  wake();
  thread_.join();
}

}  // namespace diwarp::rnic
