// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "rdmap/bodies.h"
#include "rdmap/stream_receiver.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// A message of which something is framed and not yet on the stream, or still to be framed.
struct RcMessage {
  enum class Origin : uint8_t { send_queue, response, ready };

  // In this order they leave no hole.
  Origin origin = Origin::send_queue;
  // Its payload, where that is bytes of its own.
  uint8_t body_bytes = 0;
  std::array<std::byte, rdmap::kAtomicRequestBytes> body = {};
  rdmap::StreamSegment header = {};  // of its first segment
  // Else its payload is memory of a request,
  std::span<const Sge> sges = {};
  uint64_t length = 0;               // bytes
  const SendEntry* entry = nullptr;  // whose SGEs they are
  // or memory that a peer reads.
  rdmap::ReadRequest read = {};
  Sge source = {};

  /// The memory that its payload is in, where it has no body. Of this message, which may move.
  std::span<const Sge> payload() const {
    const bool is_read = origin == Origin::response && body_bytes == 0;
    return is_read ? std::span(&source, 1) : sges;
  }

  /// Makes this a new message without payload. `read`, `source` and `body` keep what they held:
  /// nothing reads them before they are set.
  void begin(Origin of) {
    origin = of;
    header = {};
    sges = {};
    length = 0;
    entry = nullptr;
    body_bytes = 0;
  }
};

}  // namespace diwarp::rnic
