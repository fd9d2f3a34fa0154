// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace diwarp::llp {

/// What this thread stored before is visible to all processors before it loads anything after.
inline void full_fence() {
#if defined(__SANITIZE_THREAD__)
  // GCC's ThreadSanitizer refuses fences. On x86 each read-modify-write is one as well.
  std::atomic<int> here{0};
  here.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace diwarp::llp
