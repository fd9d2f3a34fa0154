// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"
#include "llp/datagram_link.h"
#include "rnic/engine/datagram_burst.h"

namespace diwarp::rnic {

/// Datagram buffers of an engine: eight trains of 64 KiB stay within an L2 cache. The datagrams are
/// those of as many of the longest trains.
inline constexpr size_t kReceiveSlots = 8;
inline constexpr size_t kReceiveSlotBytes = size_t{64} << 10;
inline constexpr size_t kReceiveDatagrams = kReceiveSlots * llp::kMaxTrain;
/// Staging for stream bytes: as much as a few system calls bring.
inline constexpr size_t kStreamBufferBytes = size_t{256} << 10;

/// Memory of an engine that the queue pair has which receives or transmits at this moment, so that
/// an idle one needs none of its own. With the baton.
class EngineBuffers {
 public:
  llp::ReceiveBatch& receive_batch() { return batch_; }
  DatagramBurst& burst() { return burst_; }
  Bytes stream_buffer() { return {stream_buffer_.get(), kStreamBufferBytes}; }

 private:
  llp::ReceiveBatch batch_{kReceiveSlots, kReceiveSlotBytes, kReceiveDatagrams};
  DatagramBurst burst_;
  std::unique_ptr<std::byte[]> stream_buffer_ = std::make_unique<std::byte[]>(kStreamBufferBytes);
};

}  // namespace diwarp::rnic
