// SPDX-License-Identifier: Apache-2.0
#include "end_memory.h"

#include <algorithm>

#include "ledger.h"

namespace diwarp::explore {

namespace {

constexpr std::byte kReleased{0xee};
constexpr Access kTargetAccess = Access::local_write | Access::remote_write | Access::remote_read;

bool is_touched(std::span<const std::byte> memory) {
  return std::ranges::any_of(memory, [](std::byte byte) { return byte != kReleased; });
}

}  // namespace

EndMemory::EndMemory(const ProtectionDomain& pd, const Scenario& scenario, size_t side)
    : buffers_(scenario.operations[side].size()),
      targets_(scenario.operations[other(side)].size()),
      receive_memory_(kSlotBytes * kMostReceives),
      receive_region_(pd, receive_memory_),
      probe_memory_(kProbeBytes),
      probe_region_(pd, probe_memory_, kTargetAccess) {
  for (Slot& slot : buffers_) slot.region.emplace(pd, std::span(slot.memory));
  for (size_t i = 0; i < targets_.size(); ++i) {
    const Operation& operation = scenario.operations[other(side)][i];
    if (operation.kind == OperationKind::send) continue;
    targets_[i].region.emplace(pd, std::span(targets_[i].memory), kTargetAccess);
    if (operation.kind == OperationKind::read)
      std::ranges::copy(contents_of(other(side), i, operation.length()),
                        targets_[i].memory.begin());
  }
}

void EndMemory::release(Slot& slot) {
  slot.released = true;
  std::ranges::fill(slot.memory, kReleased);
}

void EndMemory::deregister(Slot& slot) {
  slot.region.reset();
  release(slot);
}

std::span<std::byte> EndMemory::receive(size_t index) {
  return std::span(receive_memory_).subspan(index % kMostReceives * kSlotBytes, kSlotBytes);
}

Sge EndMemory::post_receive(size_t index, size_t length) {
  released_receives_[index % kMostReceives] = false;
  return receive_region_.sge(index % kMostReceives * kSlotBytes, length);
}

void EndMemory::release_receive(size_t index) {
  released_receives_[index % kMostReceives] = true;
  std::ranges::fill(receive(index), kReleased);
}

std::vector<const char*> EndMemory::written_since_release() {
  std::vector<const char*> written;
  for (const Slot& slot : buffers_)
    if (slot.released && is_touched(slot.memory)) written.push_back("a request");
  for (const Slot& slot : targets_)
    if (slot.released && is_touched(slot.memory)) written.push_back("a target");
  for (size_t i = 0; i < kMostReceives; ++i)
    if (released_receives_[i] && is_touched(receive(i))) written.push_back("a receive");
  return written;
}

}  // namespace diwarp::explore
