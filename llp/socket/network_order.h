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

/// Tells ThreadSanitizer what it knows of sockets but not of io_uring: a thread that received a
/// message sees what its sender did before it sent. As ThreadSanitizer does with sockets, all
/// messages count as one object. Called before a send and after a receive; does nothing in other
/// builds.
inline void order_by_network() {
#if defined(__SANITIZE_THREAD__)
  __tsan_acquire(&network_order);
  __tsan_release(&network_order);
#endif
}

}  // namespace diwarp::llp
