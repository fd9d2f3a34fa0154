// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace diwarp {

namespace detail {
extern std::atomic<uint64_t> fork_count;
}

/// How many forks lie between the process that loaded the library and this one. Grows in a forked
/// child before fork() returns there.
inline uint64_t fork_generation() { return detail::fork_count.load(std::memory_order_relaxed); }

/// A member that tells an object whether it lives in a forked child of the process that made it.
class ForkGuard {
 public:
  bool in_child() const { return fork_generation() != born_; }

 private:
  uint64_t born_ = fork_generation();
};

}  // namespace diwarp
