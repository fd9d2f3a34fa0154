// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "llp/stream.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The zero-copy calls that are in flight on the stream of an RC queue pair (llp::Stream), and the
/// requests whose completion waits for them: those whose last byte is on the stream, oldest first.
class ZeroCopyTracker {
 public:
  /// Nothing is in flight on a stream that is gone; its requests are done otherwise.
  void forget() { *this = {}; }

  /// After a call that may have been one without copying.
  void count_calls(const llp::Stream& stream) { calls_ = stream.zero_copy_calls(); }
  bool in_flight() const { return calls_ != released_; }

  /// The oldest pending request is on the stream. It is done when it needs no response and the
  /// stream has released the memory of it and of those before it.
  void sent(SendQueue& sends) { return in_flight() ? keep(sends) : sends.sent(); }
  /// Completes the requests whose memory the stream has released. True if it has released more than
  /// before.
  bool complete_released(llp::Stream& stream, SendQueue& sends);

 private:
  void keep(SendQueue& sends);

  // Their `next` leads to the one after, and `in_flight.release_at` is what zero_copy_released()
  // must reach, in 32 bits that wrap.
  SendEntry* first_ = nullptr;
  SendEntry* last_ = nullptr;
  uint64_t calls_ = 0;
  uint64_t released_ = 0;
};

}  // namespace diwarp::rnic
