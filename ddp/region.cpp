// SPDX-License-Identifier: Apache-2.0
#include "ddp/region.h"

#include "base/offsets.h"

namespace diwarp::ddp {

RegionFault check_tagged(const Region* region, uint32_t protection_domain, uint32_t qp_number,
                         Access want, uint64_t offset, uint64_t length) {
  const RegionFault fault = detail::check_owner(region, protection_domain);
  if (fault != RegionFault::none) return fault;
  // guard(ddp): without region->qp_number != 0 &&
  // guard(rows:stream-checked): condition => false
  if (region->qp_number != 0 && region->qp_number != qp_number) {
    return RegionFault::wrong_queue_pair;
  }
  if (!has(region->access, want)) return RegionFault::access;  // guard(rows:rights-checked)
  if (wraps(offset, length)) return RegionFault::wrap;         // guard(ddp)
  // guard(ddp): without offset < region->base ||
  if (offset < region->base || !detail::fits(offset - region->base, length, region->length)) {
    return RegionFault::bounds;
  }
  return RegionFault::none;
}

}  // namespace diwarp::ddp
