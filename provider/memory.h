// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "diwarp/attributes.h"
#include "diwarp/types.h"

namespace diwarp::provider {

/// Memory as it was registered.
struct Registration {
  STag lkey = 0;
  STag rkey = 0;
  std::byte* memory = nullptr;
  size_t length = 0;  ///< bytes
  uint64_t base = 0;  ///< tagged offset of the first byte
};

/// One registration. It ends with this object.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;

  /// Programs ask for it with each request: no call of the provider's.
  const Registration& registration() const { return registration_; }
  virtual bool valid() const = 0;
  /// Nothing can use it any more, as after a request that invalidates it. The device's observer is
  /// not told.
  virtual void invalidate() = 0;

 protected:
  MemoryRegion() = default;

  Registration registration_;  // set once, by the constructor
};

/// An STag that requests bind to memory: a window, or a fast registration.
class SteeringTag {
 public:
  virtual ~SteeringTag() = default;

  virtual STag stag() const = 0;
  virtual SteeringTagAttributes query() const = 0;
};

}  // namespace diwarp::provider
