// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include <diwarp/verbs.h>

#include "fuzz/watched_memory.h"

namespace diwarp::fuzz {

/// Memory that is registered, or was. Requests use slots of some.
struct DatagramRegion {
  static constexpr size_t kSlots = 8;
  static constexpr size_t kSlotBytes = 512;

  std::optional<size_t> free_slot() const;
  /// All slots are as they have to be but those in use.
  void check_slots(const char* message);

  WatchedMemory memory;
  Access access;
  std::optional<uint64_t> base = std::nullopt;
  std::optional<MemoryRegion> region = std::nullopt;
  bool was_valid = true;
  std::array<bool, kSlots> used = {};
};

/// All memory of one end: it may change only where and while something was posted or registered
/// for that.
class DatagramMemory {
 public:
  static constexpr uint64_t kBase = 0x7000;  // of the regions that peers may name

  DatagramMemory(const ProtectionDomain& pd, const ProtectionDomain& other_pd);

  DatagramRegion& receives() { return receives_; }
  DatagramRegion& sends() { return sends_; }
  DatagramRegion& reads() { return reads_; }

  /// Deregisters a region, or registers it again.
  void toggle_region(uint8_t which);
  /// Registers again what receives need.
  void restore_receives();
  /// Nothing is posted any more.
  void free_slots();
  /// An STag of one of the regions, some of which allow nothing.
  STag stag(uint8_t which) const;
  void check();

 private:
  void register_region(DatagramRegion& region, const ProtectionDomain& pd);
  void check_open();

  const ProtectionDomain& pd_;
  DatagramRegion receives_, sends_, reads_;  // of which slots are used
  DatagramRegion open_, read_only_, closed_, foreign_;
};

}  // namespace diwarp::fuzz
