// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "ddp/header.h"
#include "diwarp/attributes.h"
#include "rdmap/bodies.h"
#include "rdmap/terminate.h"
#include "rnic/rc/rc_end.h"

namespace diwarp::rnic {

/// Why the receiving half of an RC queue pair ends its connection, and what a Terminate tells of
/// that: the code, and the beginning of the offending segment. The receiving half owns it. The end
/// stays until the next stream starts.
class RcTermination {
 public:
  /// For a new stream, which does not end.
  void start();

  /// Ends the connection. Of the offending ULPDU the headers are kept; it is empty where no segment
  /// of the peer's is to blame. Always false, as those return that take a segment.
  bool end(RcEnd reason, TerminateCode code, ConstBytes ulpdu);
  /// The peer has sent this Terminate. Always false.
  bool end_by_peer(const rdmap::Terminate& terminate);
  /// The stream ended. No Terminate explains that.
  void stream_ended(RcEnd reason) { reason_ = reason; }
  /// The offending segment has so many bytes, if there is one: end() was given its headers alone.
  void set_offending_length(size_t bytes) {
    if (held_ != 0) length_ = bytes;
  }

  RcEnd reason() const { return reason_; }
  bool ended() const { return reason_ != RcEnd::none; }
  const std::optional<TerminateCode>& code() const { return code_; }
  ConstBytes offending() const { return ConstBytes(offending_).first(held_); }
  /// Bytes of the whole segment, of which offending() has the beginning.
  size_t offending_length() const { return length_; }

 private:
  /// What a Terminate tells of a segment, at most.
  static constexpr size_t kOffendingBytes = ddp::kUntaggedHeaderBytes + rdmap::kAtomicRequestBytes;

  void append(ConstBytes headers);

  RcEnd reason_ = RcEnd::none;
  std::optional<TerminateCode> code_;
  std::array<std::byte, kOffendingBytes> offending_;
  uint8_t held_ = 0;  // bytes of offending_
  size_t length_ = 0;
};

}  // namespace diwarp::rnic
