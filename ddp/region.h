// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "diwarp/types.h"

/// Regions, windows and fast registrations, and whether memory lies in one and may be used.
namespace diwarp::ddp {

/// An STag is an index (24 bits), which tells the entry of the table, and a key (the low 8 bits),
/// which its owner changes whenever it is made valid again, so that old STags name nothing.
inline constexpr int kStagKeyBits = 8;
constexpr uint32_t stag_index(STag stag) { return stag >> kStagKeyBits; }

enum class EntryKind : uint8_t {
  region,
  window,             ///< a memory window (type 2: for one queue pair)
  fast_registration,  ///< memory is named by a work request
};

/// The memory that an STag names. Owned by the table; it changes only with the engine's baton.
struct Region {
  STag stag = 0;
  uint32_t protection_domain = 0;
  Access access = Access::none;
  std::byte* memory = nullptr;
  uint64_t base = 0;    ///< tagged offset of the first byte
  uint64_t length = 0;  ///< bytes
  EntryKind kind = EntryKind::region;
  bool valid = true;        ///< windows and fast registrations: false until bound or registered
  uint32_t qp_number = 0;   ///< window: the only queue pair that may use it; 0: any
  STag parent = 0;          ///< window: the region that it is bound to
  uint64_t max_length = 0;  ///< fast registration: bytes at most

  /// The memory at a tagged offset within it.
  std::byte* at(uint64_t tagged_offset) const { return memory + (tagged_offset - base); }
};

/// Why a placement, a local access or a change of an entry is not allowed, in the order of the
/// checks (RFC 5041 section 7.2.3 and RFC 5042 section 8.1.1).
enum class RegionFault : uint8_t {
  none,
  unknown_stag,
  invalid,  ///< the entry is there, but names no memory now
  wrong_domain,
  wrong_queue_pair,  ///< a window of another queue pair
  access,
  wrap,    ///< the bytes would go on beyond the last 64-bit offset
  bounds,  ///< they lie elsewhere outside of the entry
  in_use,  ///< changes only: it is valid already, or windows are bound to it
};

namespace detail {

/// Whether `length` bytes at `within` lie inside the first `limit`; safe against 64-bit wrap.
inline bool fits(uint64_t within, uint64_t length, uint64_t limit) {
  // guard(region): => return within + length <= limit;
  // guard(rows:bounds-checked): without && length <= limit - within
  return within <= limit && length <= limit - within;
}

inline RegionFault check_owner(const Region* region, uint32_t protection_domain) {
  if (region == nullptr) return RegionFault::unknown_stag;  // guard(ddp): unknown_stag => invalid
  if (!region->valid) return RegionFault::invalid;          // guard(ddp)
  // guard(rows:domain-checked)
  if (region->protection_domain != protection_domain) return RegionFault::wrong_domain;
  return RegionFault::none;
}

}  // namespace detail

/// Checks `length` bytes at tagged offset `offset` of `region` (null: unknown). Safe against 64-bit
/// wrap; a length of zero is checked like any other and may stand at the region's very end.
RegionFault check_tagged(const Region* region, uint32_t protection_domain, uint32_t qp_number,
                         Access want, uint64_t offset, uint64_t length);

/// Checks that an SGE lies inside `region`, which must not be a window. An SGE of length zero needs
/// no region.
inline RegionFault check_local(const Region* region, uint32_t protection_domain, Access want,
                               const Sge& sge) {
  if (sge.length == 0) return RegionFault::none;  // guard(region)
  const RegionFault fault = detail::check_owner(region, protection_domain);
  if (fault != RegionFault::none) return fault;
  // guard(ddp): condition => !has(region->access, want)
  // guard(region): without || !has(region->access, want)
  if (region->kind == EntryKind::window || !has(region->access, want)) {
    return RegionFault::access;
  }
  const auto begin = reinterpret_cast<uintptr_t>(region->memory);
  const auto address = reinterpret_cast<uintptr_t>(sge.address);
  // guard(region): => const bool inside = address >= begin;
  // guard(region): without address >= begin &&
  const bool inside = address >= begin && detail::fits(address - begin, sge.length, region->length);
  return inside ? RegionFault::none : RegionFault::bounds;
}

}  // namespace diwarp::ddp
