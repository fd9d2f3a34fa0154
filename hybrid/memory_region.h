// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "diwarp/types.h"
#include "hybrid/halves.h"
#include "provider/memory.h"

namespace diwarp::hybrid {

class ProtectionDomain;

/// Memory that both halves have registered, under the STag that the hardware gave it.
class MemoryRegion final : public provider::MemoryRegion {
 public:
  /// Throws Error.
  MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory, Access access,
               std::optional<uint64_t> base);
  ~MemoryRegion() override;

  bool valid() const override { return halves_.software->valid() && halves_.hardware->valid(); }
  void invalidate() override;

 private:
  const std::shared_ptr<ProtectionDomain> domain_;
  Halves<provider::MemoryRegion> halves_;
};

/// A memory window, which the half of the queue pair that binds it has; a fast registration, which
/// only software has.
class SteeringTag final : public provider::SteeringTag {
 public:
  /// A half may be null.
  explicit SteeringTag(Halves<provider::SteeringTag> halves) : halves_(std::move(halves)) {}

  STag stag() const override;
  SteeringTagAttributes query() const override;

 private:
  const Halves<provider::SteeringTag> halves_;
};

}  // namespace diwarp::hybrid
