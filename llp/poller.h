// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <cstddef>
#include <span>

#include "base/clock.h"
#include "base/unique_fd.h"

namespace diwarp::llp {

struct PollEvent {
  void* key = nullptr;  ///< as given to add()
  bool readable = false;
  bool writable = false;
  bool failed = false;  ///< an error, the peer is gone (reading tells which), or a stream has
                        ///< released memory
};

/// Waits for descriptors, level-triggered (epoll), and for a wake() from another thread.
class Poller {
 public:
  /// Throws Error when the system has no descriptor left.
  Poller();

  /// Watches a descriptor until remove(), and must be told before it is closed. Throws Error.
  void add(int fd, void* key, bool want_write = false);
  /// The same; false where the system has no more room for it.
  bool try_add(int fd, void* key, bool want_read, bool want_write) noexcept;
  void modify(int fd, void* key, bool want_read, bool want_write);
  /// Events of this descriptor that a wait() already returned stay with the caller.
  void remove(int fd);

  /// Fills `events` from the front and returns how many; 0 after `timeout` or a wake(). A negative
  /// timeout waits for ever; a positive one is kept to the kernel's timer precision, well below a
  /// millisecond where the kernel has epoll_pwait2. Several threads may wait at the same time; a
  /// look without waiting (timeout 0) leaves a wake() to the threads that wait.
  size_t wait(std::span<PollEvent> events, Duration timeout);

  /// Makes the wait() that runs, or else the next one, return. From any thread.
  void wake();

  /// The epoll descriptor itself: polls readable while an event or a wake() waits.
  int descriptor() const { return epoll_.get(); }

 private:
  bool control(int operation, int fd, void* key, bool want_read, bool want_write) noexcept;
  void consume_wake();
  int collect(std::span<epoll_event> ready, Duration timeout);
  int collect_once(std::span<epoll_event> ready, Duration timeout);

  UniqueFd epoll_;
  UniqueFd wake_;
  std::atomic<bool> precise_{true};  // the kernel has epoll_pwait2
};

}  // namespace diwarp::llp
