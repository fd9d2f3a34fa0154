// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <diwarp/verbs.h>

#include "scenario.h"

namespace diwarp::explore {

/// The memory of one end: a slot for each operation, of its own and of its peer's, receives, and
/// what probes send and read. What is released is filled, so that a later write shows.
class EndMemory {
 public:
  static constexpr size_t kSlotBytes = 448;
  static constexpr size_t kMostReceives = 64;
  static constexpr size_t kProbeBytes = 16;

  struct Slot {
    Slot() : memory(kSlotBytes) {}
    std::vector<std::byte> memory;
    std::optional<MemoryRegion> region;
    bool released = false;
  };

  EndMemory(const ProtectionDomain& pd, const Scenario& scenario, size_t side);

  /// Of the own operations.
  std::vector<Slot>& buffers() { return buffers_; }
  /// Of the peer's operations.
  std::vector<Slot>& targets() { return targets_; }
  const std::vector<Slot>& targets() const { return targets_; }
  /// The memory is used for something else from now on.
  static void release(Slot& slot);
  /// Its region goes away as well.
  static void deregister(Slot& slot);

  std::span<std::byte> receive(size_t index);
  /// A receive of so many bytes is posted there.
  Sge post_receive(size_t index, size_t length);
  void release_receive(size_t index);

  const MemoryRegion& probe_region() const { return probe_region_; }

  /// What has memory that was written after its release, once for each.
  std::vector<const char*> written_since_release();

 private:
  std::vector<Slot> buffers_;
  std::vector<Slot> targets_;
  std::vector<std::byte> receive_memory_;
  MemoryRegion receive_region_;
  std::vector<std::byte> probe_memory_;
  MemoryRegion probe_region_;
  std::array<bool, kMostReceives> released_receives_{};
};

}  // namespace diwarp::explore
