// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "ddp/header.h"
#include "ddp/placement.h"
#include "mpa/fpdu.h"
#include "rdmap/stream_receiver.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// A long FPDU whose payload is read directly into the application's memory, where no CRC has to be
/// right first: how much of it came, and where the rest is read. RcReceive owns it, one for all
/// FPDUs of a queue pair, and reads. The memory is found anew for each read.
class RcDirectPlacement {
 public:
  /// The pieces of one read: the rest of the payload, and what follows it.
  using Pieces = std::array<Bytes, kMaxSge + 1>;

  /// Of this FPDU's payload `placed` bytes are in their place, and `segment` misses all.
  /// `took_receive`: it is the first of a message that holds a receive.
  void begin(const mpa::PartialFpdu& partial, const rdmap::StreamSegment& segment, size_t placed,
             bool took_receive);
  bool under_way() const { return under_way_; }
  /// It is whole, or given up. Its segment and header stay until the next one.
  void end() { under_way_ = false; }

  const rdmap::StreamSegment& segment() const { return segment_; }
  ConstBytes header() const { return ConstBytes(header_).first(header_bytes_); }
  size_t ulpdu_bytes() const { return header_bytes_ + segment_.missing; }
  bool took_receive() const { return took_receive_; }

  /// Where the next bytes are to be read: into the segment's memory, and then into the front of
  /// `buffer`. Returns the number of pieces.
  size_t room(const ddp::PlacementTarget& target, Bytes buffer, Pieces& pieces) const;
  /// So many bytes were read there. Returns the part of `buffer` that holds bytes after the FPDU,
  /// or nothing while the FPDU is not whole.
  std::optional<ConstBytes> add(size_t came, ConstBytes buffer);

 private:
  rdmap::StreamSegment segment_;
  std::array<std::byte, ddp::kUntaggedHeaderBytes> header_;
  uint8_t header_bytes_ = 0;
  bool under_way_ = false;
  bool took_receive_ = false;
  size_t placed_ = 0;   // bytes of its payload
  size_t trailer_ = 0;  // bytes after the payload that are still to come
};

}  // namespace diwarp::rnic
