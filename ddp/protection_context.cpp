// SPDX-License-Identifier: Apache-2.0
#include "ddp/protection_context.h"

#include <algorithm>

namespace diwarp::ddp {

bool ProtectionContext::check_sges(std::span<const Sge> sges, Access want) const {
  return std::all_of(sges.begin(), sges.end(), [&](const Sge& sge) {
    if (sge.length == 0) return true;
    const Region* const region = stags_.find(sge.lkey);
    // guard(region): protection_domain_ => region != nullptr ? region->protection_domain : 0
    return check_local(region, protection_domain_, want, sge) == RegionFault::none;
  });
}

}  // namespace diwarp::ddp
