// SPDX-License-Identifier: Apache-2.0
#include "common/endpoint_memory.h"

#include <algorithm>

namespace diwarp::tools {
namespace {

/// A cache line: no slot shares one with another, and atomics find their 8 bytes aligned.
constexpr size_t kAlignment = 64;

size_t stride_of(size_t size) {
  // An empty slot still has an address.
  return (std::max(size, size_t{1}) + kAlignment - 1) / kAlignment * kAlignment;
}

/// What is read goes where peers may write: many iWARP devices place it nowhere else
/// (Capability::read_sinks).
Access local_access(const EndpointShape& shape) {
  return shape.asks() ? Access::local_write | Access::remote_write : Access::local_write;
}

}  // namespace

EndpointMemory::EndpointMemory(const ProtectionDomain& pd, const EndpointShape& shape)
    : send_size_(shape.send_size),
      receive_size_(shape.receive_size),
      send_stride_(stride_of(shape.send_size)),
      receive_stride_(stride_of(shape.receive_size)),
      receives_at_(send_stride_ * shape.send_slots),
      memory_(receives_at_ + receive_stride_ * shape.receive_slots + kAlignment),
      region_(pd, memory_, local_access(shape)) {}

void EndpointMemory::grant(const ProtectionDomain& pd, const EndpointShape& shape) {
  if (shape.grants == Access::none) return;
  const Access access = Access::local_write | shape.grants;
  if (shape.group)
    granted_ = MemoryRegion::with_stag(pd, granted_slots(shape), shape.group->stag, 0, access);
  else
    granted_.emplace(pd, granted_slots(shape), access);
}

std::span<std::byte> EndpointMemory::granted_slots(const EndpointShape& shape) {
  if (shape.grants != Access::remote_write) return std::span(memory_).first(receives_at_);
  return std::span(memory_).subspan(receives_at_, receive_stride_ * shape.receive_slots);
}

std::optional<RemoteMemory> EndpointMemory::granted() const {
  if (!granted_) return std::nullopt;
  return RemoteMemory{.stag = granted_->rkey(), .offset = granted_->base()};
}

RecordedSegment EndpointMemory::recorded_segment(const WorkCompletion& segment) {
  if (!granted_ || segment.stag != granted_->rkey()) return {};
  const uint64_t offset = segment.tagged_offset - granted_->base();
  const uint64_t within = offset % receive_stride_;
  if (within + segment.byte_count > receive_size_) return {};
  const auto slot = static_cast<uint32_t>(offset / receive_stride_);
  return {receive_slot(slot).subspan(within, segment.byte_count), within};
}

std::span<std::byte> EndpointMemory::recorded(const WorkCompletion& record) {
  if (!granted_ || record.stag != granted_->rkey()) return {};
  const uint64_t offset = record.tagged_offset - granted_->base();
  const uint64_t length = record.validity.length();
  if (offset % receive_stride_ != 0 || length > receive_size_) return {};
  return receive_slot(static_cast<uint32_t>(offset / receive_stride_)).first(length);
}

}  // namespace diwarp::tools
