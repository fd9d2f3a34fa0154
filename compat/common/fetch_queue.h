// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include "compat/common/error.h"
#include "compat/common/event_descriptor.h"
#include "compat/common/process.h"

namespace diwarp::compat {

/// Events that wait to be fetched, behind a descriptor that polls readable while there are any: one
/// token an event. Any thread may call any function of it, and close() ends the waiting ones.
///
/// `Event` tells with `fetched()` that it is on its way to the program. That is called with the
/// queue's lock, under which purge() removes events: an event is either removed, or counted as
/// fetched before purge() returns.
template <class Event>
class FetchQueue {
 public:
  int descriptor() const { return tokens_.get(); }

  /// False where the queue is closed: the event is not kept.
  bool push(Event event) {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    events_.push_back(std::move(event));
    tokens_.put();
    return true;
  }

  /// The oldest event. Waits for it as the descriptor's O_NONBLOCK says: throws Refusal(EAGAIN),
  /// (EINTR), (EBADF) once the queue is closed, or (ENODEV) in a forked child, where a thread of
  /// the parent's may have the lock for ever.
  Event take() {
    process_.check();
    for (;;) {
      begin_wait();
      const Waiting waiting(*this);
      tokens_.take();
      if (auto event = pop()) return std::move(*event);
    }
  }

  /// Takes out the events for which `about` is true. A forked child has none.
  template <class About>
  std::deque<Event> purge(About about) {
    std::deque<Event> taken;
    if (!process_.is_own()) return taken;
    const std::lock_guard lock(mutex_);
    std::deque<Event> kept;
    for (Event& event : events_) (about(event) ? taken : kept).push_back(std::move(event));
    events_ = std::move(kept);
    for (size_t i = 0; i < taken.size(); ++i) tokens_.absorb();
    return taken;
  }

  /// Ends the waits of other threads, which may still be in take() afterwards. Returns what is
  /// left; in a forked child nothing is done.
  std::deque<Event> close() {
    if (!process_.is_own()) return {};
    const std::lock_guard lock(mutex_);
    closed_ = true;
    tokens_.put(waiting_);
    return std::exchange(events_, {});
  }

 private:
  /// A thread in take(), which may end by cancellation.
  class Waiting {
   public:
    explicit Waiting(FetchQueue& queue) : queue_(queue) {}
    ~Waiting() {
      const std::lock_guard lock(queue_.mutex_);
      --queue_.waiting_;
    }
    Waiting(const Waiting&) = delete;
    Waiting& operator=(const Waiting&) = delete;

   private:
    FetchQueue& queue_;
  };

  void begin_wait() {
    const std::lock_guard lock(mutex_);
    refuse_if(closed_, EBADF);
    ++waiting_;
  }

  /// Nothing where the token's event was purged.
  std::optional<Event> pop() {
    const std::lock_guard lock(mutex_);
    refuse_if(closed_, EBADF);
    if (events_.empty()) return std::nullopt;
    std::optional<Event> event(std::move(events_.front()));
    events_.pop_front();
    event->fetched();
    return event;
  }

  const Process process_;
  EventDescriptor tokens_;
  std::mutex mutex_;  // guards what follows
  std::deque<Event> events_;
  size_t waiting_ = 0;
  bool closed_ = false;
};

}  // namespace diwarp::compat
