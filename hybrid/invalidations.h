// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>

#include "diwarp/types.h"
#include "hybrid/halves.h"
#include "provider/memory.h"

namespace diwarp::hybrid {

/// Carries the invalidation of a region from the half where it happened to the other. Any thread.
class Invalidations {
 public:
  void add(STag stag, const Halves<provider::MemoryRegion>& region);
  void remove(STag stag);

  /// The other half of the region has been invalidated.
  void invalidate(Half half, STag stag);

 private:
  struct Region {
    std::weak_ptr<provider::MemoryRegion> software;
    std::weak_ptr<provider::MemoryRegion> hardware;
  };
  std::shared_ptr<provider::MemoryRegion> find(Half half, STag stag);

  std::mutex mutex_;  // guards regions_
  std::unordered_map<STag, Region> regions_;
};

}  // namespace diwarp::hybrid
