// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "dgram/rd_header.h"

namespace diwarp::dgram {

/// The numbers of the datagrams that a sender sends, much as RFC 9293 section 3.3.1 has them of
/// bytes. They are 64 bits wide and never wrap. Always: first unreleased <= first unacknowledged <=
/// next. What the peer's window once allowed stays allowed.
class SequenceWindow {
 public:
  /// Datagrams that are sent and not released, at most.
  static constexpr uint32_t kCapacity = 4096;

  /// `first`: above 0, so that there is one before it. `window`: the peer's, before it has said
  /// anything else.
  explicit SequenceWindow(uint64_t first = 1, uint16_t window = 0)
      : first_(first), next_(first), una_(first), released_(first), edge_(first + window) {}

  uint64_t next() const { return next_; }
  uint64_t first_unacknowledged() const { return una_; }
  uint64_t first_unreleased() const { return released_; }
  bool idle() const { return una_ == next_; }
  uint64_t outstanding() const { return next_ - una_; }
  uint64_t unreleased() const { return next_ - released_; }

  /// Whether the peer's window lets the one go that follows `ahead` others.
  bool is_open(uint32_t ahead = 0) const { return next_ + ahead < edge_; }
  /// The number nearest to what is acknowledged whose low 32 bits are `wire`.
  uint64_t extend(uint32_t wire) const { return rd_extend(wire, una_ - 1); }
  /// Whether a datagram with this number was sent not long ago: what a reset must repeat. The one
  /// before the first counts, for probes name it.
  bool was_sent(uint32_t sequence) const {
    const uint64_t number = rd_extend(sequence, next_);
    // guard(dgram): without && number + kCapacity >= una_
    // guard(rd-reset-names): without number < next_ &&
    return number < next_ && number + kCapacity >= una_ && number + 1 >= first_;
  }

  /// next() was sent.
  void sent() { ++next_; }
  /// The first unacknowledged one is acknowledged.
  void acknowledged() {
    assert(una_ != next_);
    ++una_;
  }
  /// The first unreleased one is released.
  void released() {
    assert(released_ != una_);
    ++released_;
  }
  /// The peer acknowledges all up to `last`, and has a window for so many after it.
  void open(uint64_t last, uint16_t window) { edge_ = std::max(edge_, last + 1 + window); }
  /// Whether the peer told both before: all up to the number whose low 32 bits are `wire`, and a
  /// window of that end or a later one.
  bool knows(uint32_t wire, uint16_t window) const {
    return wire == static_cast<uint32_t>(una_ - 1) && una_ + window <= edge_;
  }

 private:
  uint64_t first_;
  uint64_t next_;
  uint64_t una_;       // the first that is not acknowledged for good
  uint64_t released_;  // the first that was not released
  uint64_t edge_;      // the first that the peer has no window for
};

}  // namespace diwarp::dgram
