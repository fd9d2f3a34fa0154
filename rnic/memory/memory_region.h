// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "ddp/stag_table.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "provider/memory.h"
#include "rnic/memory/protection_domain.h"

namespace diwarp::rnic {

/// An entry of the device's STag table; lives there while this object does.
class SteeringTag final : public provider::SteeringTag {
 public:
  /// Under a fresh random STag, or under `region.stag` if that was chosen; throws Error then if it
  /// cannot be had.
  SteeringTag(std::shared_ptr<ProtectionDomain> domain, ddp::Region region, bool chosen = false);
  ~SteeringTag() override;
  SteeringTag(const SteeringTag&) = delete;
  SteeringTag& operator=(const SteeringTag&) = delete;

  STag stag() const override { return stag_; }
  SteeringTagAttributes query() const override;
  /// Makes the entry invalid.
  void revoke();

 private:
  std::shared_ptr<ProtectionDomain> domain_;
  STag stag_;
};

/// One registration.
class MemoryRegion final : public provider::MemoryRegion {
 public:
  MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory, Access access,
               std::optional<uint64_t> base, std::optional<STag> chosen = std::nullopt);

  bool valid() const override { return tag_.query().valid; }
  void invalidate() override { tag_.revoke(); }

 private:
  MemoryRegion(std::shared_ptr<ProtectionDomain> domain, const ddp::Region& region, bool chosen);

  SteeringTag tag_;
};

}  // namespace diwarp::rnic
