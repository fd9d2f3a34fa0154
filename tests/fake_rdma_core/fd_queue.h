// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "fake_rdma_core/failure.h"

namespace fake {

/// Events behind a descriptor that polls readable while there are some. The eventfd holds as many
/// tokens as there are events, less those that threads in take() have just read.
template <class Event>
class FdQueue {
 public:
  FdQueue() : fd_(::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC)) { refuse_if(fd_ < 0, errno); }
  ~FdQueue() { ::close(fd_); }
  FdQueue(const FdQueue&) = delete;
  FdQueue& operator=(const FdQueue&) = delete;

  int fd() const { return fd_; }

  void push(Event event) {
    const std::lock_guard lock(mutex_);
    events_.push_back(std::move(event));
    const uint64_t token = 1;
    [[maybe_unused]] const ssize_t written = ::write(fd_, &token, sizeof token);
  }

  /// As the kernel does where a device is gone: the descriptor stays readable, and take() refuses
  /// with EIO when no events are left.
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    const uint64_t tokens = uint64_t{1} << 62;  // without end
    [[maybe_unused]] const ssize_t written = ::write(fd_, &tokens, sizeof tokens);
  }

  /// The oldest event; waits for it unless the descriptor is O_NONBLOCK (then: EAGAIN). `fetched`
  /// is called with it before purge() can return that there is none.
  template <class Fetched>
  Event take(Fetched&& fetched) {
    for (;;) {
      read_token();
      const std::lock_guard lock(mutex_);
      refuse_if(events_.empty() && closed_, EIO);
      if (events_.empty()) continue;  // it was purged
      Event event = std::move(events_.front());
      events_.pop_front();
      fetched(event);
      return event;
    }
  }

  /// Removes the events for which `unwanted` holds.
  template <class Unwanted>
  void purge(Unwanted&& unwanted) {
    std::deque<Event> removed;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    std::deque<Event> kept;
    for (Event& event : events_) (unwanted(event) ? removed : kept).push_back(std::move(event));
    events_ = std::move(kept);
    for (size_t i = 0; i < removed.size(); ++i) drop_token();
  }

 private:
  void read_token() {
    uint64_t token = 0;
    const ssize_t count = ::read(fd_, &token, sizeof token);
    refuse_if(count < 0, errno);
  }
  /// Does not wait: a thread in take() may have read the token, and then finds no event.
  void drop_token() {
    uint64_t token = 0;
    const iovec into = {.iov_base = &token, .iov_len = sizeof token};
    [[maybe_unused]] const ssize_t count = ::preadv2(fd_, &into, 1, -1, RWF_NOWAIT);
  }

  const int fd_;
  std::mutex mutex_;
  std::deque<Event> events_;
  bool closed_ = false;
};

}  // namespace fake
