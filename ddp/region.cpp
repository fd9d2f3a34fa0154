// SPDX-License-Identifier: Apache-2.0
#include "ddp/stag_table.h"

#include "base/offsets.h"

namespace diwarp::ddp {
namespace {

/// Whether `length` bytes at `within` lie inside the first `limit`; safe against 64-bit wrap.
bool fits(uint64_t within, uint64_t length, uint64_t limit) {
  // guard(region): => return within + length <= limit;
  // guard(rows:bounds-checked): without && length <= limit - within
  return within <= limit && length <= limit - within;
}

RegionFault check_owner(const Region* region, uint32_t protection_domain) {
  if (region == nullptr) return RegionFault::unknown_stag;  // guard(ddp): unknown_stag => invalid
  if (!region->valid) return RegionFault::invalid;          // guard(ddp)
  // guard(rows:domain-checked)
  if (region->protection_domain != protection_domain) return RegionFault::wrong_domain;
  return RegionFault::none;
}

}  // namespace

RegionFault check_tagged(const Region* region, uint32_t protection_domain, uint32_t qp_number,
                         Access want, uint64_t offset, uint64_t length) {
  const RegionFault fault = check_owner(region, protection_domain);
  if (fault != RegionFault::none) return fault;
  // guard(ddp): without region->qp_number != 0 &&
  // guard(rows:stream-checked): condition => false
  if (region->qp_number != 0 && region->qp_number != qp_number) {
    return RegionFault::wrong_queue_pair;
  }
  if (!has(region->access, want)) return RegionFault::access;  // guard(rows:rights-checked)
  if (wraps(offset, length)) return RegionFault::wrap;         // guard(ddp)
  // guard(ddp): without offset < region->base ||
  if (offset < region->base || !fits(offset - region->base, length, region->length)) {
    return RegionFault::bounds;
  }
  return RegionFault::none;
}

RegionFault check_local(const Region* region, uint32_t protection_domain, Access want,
                        const Sge& sge) {
  if (sge.length == 0) return RegionFault::none;  // guard(region)
  const RegionFault fault = check_owner(region, protection_domain);
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
  const bool inside = address >= begin && fits(address - begin, sge.length, region->length);
  return inside ? RegionFault::none : RegionFault::bounds;
}

}  // namespace diwarp::ddp
