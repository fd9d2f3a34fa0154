// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/rnic_thread.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>

#include <utility>

#include "base/log.h"
#include "base/signals_blocked.h"

namespace diwarp::rnic {

namespace {

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
