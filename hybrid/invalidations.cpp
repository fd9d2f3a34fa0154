// SPDX-License-Identifier: Apache-2.0
#include "hybrid/invalidations.h"

namespace diwarp::hybrid {

void Invalidations::add(STag stag, const Halves<provider::MemoryRegion>& region) {
  const std::lock_guard lock(mutex_);
  regions_[stag] = {region.software, region.hardware};
}

void Invalidations::remove(STag stag) {
  const std::lock_guard lock(mutex_);
  regions_.erase(stag);
}

// Only the half that is wanted is kept alive: the end of a region in software waits for the RNIC
// thread, which may be the one that asks for the other half.
std::shared_ptr<provider::MemoryRegion> Invalidations::find(Half half, STag stag) {
  const std::lock_guard lock(mutex_);
  const auto found = regions_.find(stag);
  if (found == regions_.end()) return nullptr;
  return half == Half::software ? found->second.software.lock() : found->second.hardware.lock();
}

void Invalidations::invalidate(Half half, STag stag) {
  if (const auto region = find(half, stag)) region->invalidate();
}

}  // namespace diwarp::hybrid
