// SPDX-License-Identifier: Apache-2.0
#include "ddp/protection_context.h"

namespace diwarp::ddp {

bool ProtectionContext::check_sges(std::span<const Sge> sges, Access want) const {
  for (const Sge& sge : sges) {
    if (sge.length == 0) continue;
    const Region* const region = stags_.find(sge.lkey);
    // guard(region): protection_domain_ => region != nullptr ? region->protection_domain : 0
    if (check_local(region, protection_domain_, want, sge) != RegionFault::none) return false;
  }
  return true;
}

}  // namespace diwarp::ddp
