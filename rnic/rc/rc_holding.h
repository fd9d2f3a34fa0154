// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "llp/stream.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// What the stream of an RC queue pair has borrowed of the application's memory (llp::Stream), and
/// the requests whose completion waits for it: those whose last byte is on the stream, oldest
/// first.
class RcHolding {
 public:
  /// Nothing is borrowed from a stream that is gone; its requests are done otherwise.
  void forget() { *this = {}; }

  /// After a call that may have borrowed.
  void note(const llp::Stream& stream) { borrowed_ = stream.borrowed(); }
  bool borrows() const { return borrowed_ != released_; }

  /// The oldest pending request is on the stream. It is done when it needs no response and the
  /// stream has let go of what it and those before it gave.
  void sent(SendQueue& sends) { return borrows() ? hold(sends) : sends.sent(); }
  /// Asks the stream what it has let go of. True if that is more than before.
  bool take_back(llp::Stream& stream, SendQueue& sends);

 private:
  void hold(SendQueue& sends);

  // Their `next` leads to the one behind, and `lent_to` is what released() must reach, in 32 bits
  // that wrap.
  SendEntry* first_ = nullptr;
  SendEntry* last_ = nullptr;
  uint64_t borrowed_ = 0;
  uint64_t released_ = 0;
};

}  // namespace diwarp::rnic
