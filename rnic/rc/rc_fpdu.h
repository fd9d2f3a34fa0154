// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "ddp/header.h"
#include "ddp/segmentation.h"
#include "llp/stream.h"
#include "mpa/fpdu.h"
#include "rdmap/bodies.h"

namespace diwarp::rnic {

/// An FPDU that is framed and not yet wholly on the stream. Its payload is found anew in the
/// message's SGEs each time.
struct RcFpdu {
  static constexpr size_t kMaxHead =
      mpa::kLengthBytes + ddp::kUntaggedHeaderBytes + rdmap::kAtomicRequestBytes;
  static_assert(kMaxHead <= llp::kCopiedPiece, "this memory is used again at once");

  std::array<std::byte, kMaxHead> head;  // length, DDP header, a body of the message's own
  std::array<std::byte, mpa::kMaxTrailer> trailer;
  uint8_t head_bytes = 0;
  uint8_t trailer_bytes = 0;
  bool sealed = true;                 // its CRC is computed, if the connection has any
  uint32_t whole = 0;                 // bytes on the stream, markers included
  ddp::Segment segment = {};          // where its payload lies in its message
  const std::byte* staged = nullptr;  // the payload, where it was copied

  ConstBytes head_view() const { return ConstBytes(head).first(head_bytes); }
  size_t ulpdu_bytes() const { return head_bytes - mpa::kLengthBytes + segment.length; }
};

/// What the try to frame an FPDU led to.
enum class RcFramed : uint8_t {
  fpdu,
  no_room,    ///< in the burst, until it is on the stream
  no_memory,  ///< now, and that is counted
};

}  // namespace diwarp::rnic
