// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>

#include "rnic/rc/burst_ring.h"
#include "rnic/rc/rc_fpdu.h"

namespace diwarp::rnic {

/// The FPDUs that are framed and not yet wholly on the stream, in order. Of the oldest one the
/// stream may have a part. RcTransmit owns it.
class RcFpduQueue {
 public:
  /// As BurstRing has it.
  void use(std::span<RcFpdu> memory) { ring_.use(memory); }
  void clear() {
    ring_.clear();
    waiting_bytes_ = sent_ = 0;
  }

  bool empty() const { return ring_.empty(); }
  size_t size() const { return ring_.size(); }
  const RcFpdu& at(size_t index) const { return ring_.at(index); }
  RcFpdu& at(size_t index) { return ring_.at(index); }
  const RcFpdu& front() const { return ring_.at(0); }
  /// Bytes of all of them, also of what the stream has of the oldest.
  size_t waiting_bytes() const { return waiting_bytes_; }
  /// Bytes of the oldest one that the stream has.
  size_t sent() const { return sent_; }

  /// The FPDU that push() adds.
  RcFpdu& next() { return ring_.next(); }
  void push() {
    waiting_bytes_ += ring_.next().whole;
    ring_.push();
  }

  /// The stream took `bytes`: removes from these the oldest FPDU's. True if that is wholly on the
  /// stream, and is to be popped.
  bool take_sent(size_t& bytes) {
    const size_t taken = std::min(bytes, front().whole - sent_);
    bytes -= taken;
    sent_ += taken;
    return sent_ == front().whole;
  }
  void pop() {
    waiting_bytes_ -= front().whole;
    sent_ = 0;
    ring_.pop();
  }

 private:
  BurstRing<RcFpdu> ring_;
  size_t waiting_bytes_ = 0;
  size_t sent_ = 0;
};

}  // namespace diwarp::rnic
