// SPDX-License-Identifier: Apache-2.0
#include "ddp/protection_context.h"

#include <algorithm>

namespace diwarp::ddp {

bool ProtectionContext::check_each(std::span<const Sge> sges, Access want,
                                   Remembered& remembered) const {
  for (const Sge& sge : sges) {
    if (sge.length == 0) continue;
    const uint64_t changes = stags_.changes();  // an entry that goes meanwhile is forgotten
    const Region* const region = stags_.find(sge.lkey);
    // guard(region): protection_domain_ => region != nullptr ? region->protection_domain : 0
    if (check_local(region, protection_domain_, want, sge) != RegionFault::none) return false;
    remember(*region, changes, remembered);
  }
  return true;
}

void ProtectionContext::remember(const Region& region, uint64_t changes,
                                 Remembered& remembered) const {
  if (changes != remembered_at_) read_ = written_ = {};  // guard(region)
  remembered_at_ = changes;
  const auto length = static_cast<uint32_t>(std::min<uint64_t>(region.length, UINT32_MAX));
  remembered = {region.memory, length, region.stag};
}

}  // namespace diwarp::ddp
