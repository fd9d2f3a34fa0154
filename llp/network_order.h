// SPDX-License-Identifier: Apache-2.0
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace diwarp::llp {

#if defined(__SANITIZE_THREAD__)
inline char network_order;
#endif

/// Tells ThreadSanitizer that a thread which received a message sees what its sender did before it
/// sent. It knows that of recv() and recvmsg(), and not of other ways to receive. All
/// messages count as one object, as they do there. Called before a send and after a receive; does
/// nothing in other builds.
inline void order_by_network() {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&network_order);
  __tsan_release(&network_order);
#endif
}

}  // namespace diwarp::llp
