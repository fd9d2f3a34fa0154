// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "ddp/placement.h"
#include "ddp/stag_table.h"
#include "diwarp/types.h"

namespace diwarp::ddp {

/// The protection check of one queue pair (RFC 5041 section 7.2.3, RFC 5042 section 8.1.1): whether
/// the memory that a request or a peer's segment names is valid, belongs to the queue pair's
/// protection domain, allows what is wanted, and reaches so far. A window is good for the queue
/// pair that it was bound to, and for no other.
///
/// With the baton. Asked again whenever work is resumed: memory may have gone meanwhile.
class ProtectionContext {
 public:
  ProtectionContext(STagTable& stags, uint32_t protection_domain)
      : stags_(stags), protection_domain_(protection_domain) {}

  /// The number that windows are bound to. Before the first check.
  void set_queue_pair(uint32_t number) { queue_pair_ = number; }
  /// Which accesses of peers are allowed where the memory allows them as well; at first all.
  void set_remote_access(Access accesses) {
    refused_ = Access::none;
    for (const Access one : {Access::remote_write, Access::remote_read, Access::remote_atomic})
      if (!has(accesses, one)) refused_ = refused_ | one;
  }
  uint32_t queue_pair() const { return queue_pair_; }

  // --- Memory of requests: whether every SGE may be used so.

  bool may_read(std::span<const Sge> sges) const { return check(sges, Access::none, read_); }
  bool may_write(std::span<const Sge> sges) const {
    // guard(region): Access::local_write => Access::none
    return check(sges, Access::local_write, written_);
  }

  /// A list as a target; nothing where some of it may not be written.
  std::optional<PlacementTarget> target(std::span<const Sge> sges) const {
    if (!may_write(sges)) return std::nullopt;
    return checked_target(sges);
  }
  /// The same of a list that was checked with the baton held as it is now.
  PlacementTarget checked_target(std::span<const Sge> sges) const { return PlacementTarget(sges); }

  /// Where a segment of `length` bytes goes that stands at `offset` of an untagged message: the
  /// target is the whole buffer.
  struct CheckedBuffer {
    BufferFault fault = BufferFault::none;
    PlacementTarget target = {};
  };
  CheckedBuffer check_untagged(const UntaggedBuffer& buffer, uint64_t offset,
                               uint64_t length) const {
    if (!buffer.holds(offset, length)) return {.fault = BufferFault::too_long};
    if (!may_write(buffer.sges)) return {.fault = BufferFault::protection};
    return {.target = checked_target(buffer.sges)};
  }

  // --- Memory that a peer names.

  struct Checked {
    RegionFault fault = RegionFault::none;
    const Region* region =
        nullptr;  ///< not null where there is no fault; until the baton goes back
  };
  Checked check_tagged(STag stag, Access want, uint64_t offset, uint64_t length) const {
    const Region* const region = stags_.find(stag);
    const RegionFault fault =
        ddp::check_tagged(region, protection_domain_, queue_pair_, want, offset, length);
    // guard(region): condition => false
    if (fault == RegionFault::none && (want & refused_) != Access::none)
      return {RegionFault::access, region};
    return {fault, region};
  }
  /// The same for a placement: the target is what was checked, from `offset` on.
  struct CheckedTarget {
    RegionFault fault = RegionFault::none;
    const Region* region = nullptr;  ///< as Checked has it
    PlacementTarget target = {};
  };
  CheckedTarget check_placement(STag stag, Access want, uint64_t offset, uint64_t length) const {
    const auto [fault, region] = check_tagged(stag, want, offset, length);
    if (fault != RegionFault::none) return {.fault = fault, .region = region};
    // guard(rows:write-place): region->at(offset) => region->memory
    // guard(rows:region-base): region->at(offset) => region->memory
    return {.region = region, .target = PlacementTarget(region->at(offset), length)};
  }
  /// Of what was checked before; null where it has gone since.
  const Region* find(STag stag) const { return stags_.find(stag); }

  // --- Changes, as STagTable has them.

  RegionFault bind(const MemoryBinding& binding) const {
    return stags_.bind(binding, protection_domain_, queue_pair_);
  }
  RegionFault register_memory(const MemoryBinding& binding) const {
    return stags_.register_memory(binding, protection_domain_);
  }
  RegionFault invalidate(STag stag) const {
    return stags_.invalidate(stag, protection_domain_, queue_pair_, false);
  }
  RegionFault invalidate_for_peer(STag stag) const {
    return stags_.invalidate(stag, protection_domain_, queue_pair_, true);
  }

 private:
  /// The memory that one access was last allowed of, its first 4 GiB. Most lists are one SGE that
  /// lies there again.
  struct Remembered {
    const std::byte* memory = nullptr;
    uint32_t length = 0;
    STag stag = 0;

    bool has(const Sge& sge) const {
      if (stag != sge.lkey) return false;  // guard(region)
      const uint64_t within =
          reinterpret_cast<uintptr_t>(sge.address) - reinterpret_cast<uintptr_t>(memory);
      return detail::fits(within, sge.length, length);
    }
  };

  bool check(std::span<const Sge> sges, Access want, Remembered& remembered) const {
    // guard(region): without stags_.changes() == remembered_at_ &&
    const bool known =
        sges.size() == 1 && stags_.changes() == remembered_at_ && remembered.has(sges.front());
    return known || check_each(sges, want, remembered);
  }
  void remember(const Region& region, uint64_t changes, Remembered& remembered) const;
  bool check_each(std::span<const Sge> sges, Access want, Remembered& remembered) const;

  STagTable& stags_;
  const uint32_t protection_domain_;
  uint32_t queue_pair_ = 0;
  Access refused_ = Access::none;  // of peers, whatever the memory allows
  // The table's changes() when these were checked; 0: nothing was.
  mutable uint64_t remembered_at_ = 0;
  mutable Remembered read_;
  mutable Remembered written_;
};

}  // namespace diwarp::ddp
