// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/endpoint_shape.h"

namespace diwarp::tools {

/// A part of a Write-Record; empty if it is in no slot.
struct RecordedSegment {
  std::span<std::byte> memory;
  uint64_t offset = 0;
};

/// The slots of an endpoint, and the registration of those that the peer may use.
class EndpointMemory {
 public:
  EndpointMemory(const ProtectionDomain& pd, const EndpointShape& shape);

  /// The peer may use what the shape says from now on.
  void grant(const ProtectionDomain& pd, const EndpointShape& shape);
  /// Where the slots begin that the peer may use; nothing if it may use none.
  std::optional<RemoteMemory> granted() const;

  std::span<std::byte> send_slot(uint32_t slot) {
    return std::span(memory_).subspan(slot * send_stride_, send_size_);
  }
  std::span<std::byte> receive_slot(uint32_t slot) {
    return std::span(memory_).subspan(receives_at_ + slot * receive_stride_, receive_size_);
  }
  /// The slot that the record was written into, as far as it describes it.
  std::span<std::byte> recorded(const WorkCompletion& record);
  /// The bytes of a segment that was reported by itself, and where in its record they are.
  RecordedSegment recorded_segment(const WorkCompletion& segment);

  Sge sge_of(std::span<std::byte> slot) const {
    return {slot.data(), static_cast<uint32_t>(slot.size()), region_.lkey()};
  }
  size_t send_stride() const { return send_stride_; }
  size_t receive_stride() const { return receive_stride_; }

 private:
  std::span<std::byte> granted_slots(const EndpointShape& shape);

  const size_t send_size_;
  const size_t receive_size_;
  const size_t send_stride_;
  const size_t receive_stride_;
  const size_t receives_at_;       // the first receive slot, after all send slots
  std::vector<std::byte> memory_;  // the send slots, then the receive slots
  MemoryRegion region_;
  std::optional<MemoryRegion> granted_;
};

}  // namespace diwarp::tools
