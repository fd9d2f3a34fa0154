// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "llp/stream.h"
#include "mpa/negotiated_parameters.h"
#include "rnic/rc/rc_fpdu.h"
#include "rnic/rc/rc_message.h"

namespace diwarp::rnic {

/// How old the stream's segment size may become. It moves with the path MTU and with the peer's
/// window, and asking costs a system call.
inline constexpr Duration kSegmentRefresh = std::chrono::milliseconds(100);

/// Cuts messages and encodes their FPDUs, as the connection has agreed: with or without CRC and
/// markers, of the length that a TCP segment carries. It knows the position in the stream, which
/// markers need. RcTransmit owns it, and encodes FPDUs in the order of the stream.
class FpduEncoder {
 public:
  /// For a new stream. `max_fpdu` of 0: FPDUs are what a TCP segment carries.
  void start(const mpa::NegotiatedParameters& parameters, uint32_t max_fpdu);
  /// Before messages are cut: asks the stream for its segment size now and then.
  void refresh_segment(const llp::Stream& stream, Time now);

  bool crc() const { return crc_; }
  bool markers() const { return markers_; }
  /// Bytes of the stream before what encode() is given next.
  uint64_t position() const { return position_; }

  /// Cuts the message at this offset: the FPDU's segment, and how long its parts are.
  void cut(const RcMessage& message, uint64_t offset, RcFpdu& fpdu) const;
  /// Writes head and trailer around this payload; if it is not sealed, with zero for a CRC. Without
  /// markers.
  void encode(RcFpdu& fpdu, const RcMessage& message, std::span<const ConstBytes> payload,
              bool sealed);
  /// Writes the trailer anew, with the CRC.
  void seal(RcFpdu& fpdu, std::span<const ConstBytes> payload) const;
  /// Writes all of the FPDU into `out`: markers stand between any two bytes of it.
  void encode_marked(RcFpdu& fpdu, const RcMessage& message, std::span<const ConstBytes> payload,
                     Bytes out);
  /// Appends an FPDU that nothing follows, at this position of the stream.
  void append_last(std::vector<std::byte>& bytes, ConstBytes ulpdu, uint64_t position) const;

 private:
  bool crc_ = true;
  bool markers_ = false;
  uint32_t max_fpdu_ = 0;
  size_t mulpdu_ = 0;
  Time measured_{};
  uint64_t position_ = 0;
};

}  // namespace diwarp::rnic
