// SPDX-License-Identifier: Apache-2.0
#include "base/fork_guard.h"

#include <pthread.h>

namespace diwarp {
namespace detail {

std::atomic<uint64_t> fork_count{0};

}  // namespace detail

namespace {

void count_fork() { detail::fork_count.fetch_add(1, std::memory_order_relaxed); }

// Code that reads fork_count links this file, so the handler is there before main().
[[maybe_unused]] const int installed = pthread_atfork(nullptr, nullptr, &count_fork);

}  // namespace
}  // namespace diwarp
