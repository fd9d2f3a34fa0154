// SPDX-License-Identifier: Apache-2.0
#include "hybrid/memory_region.h"

#include <utility>

#include "hybrid/one_stag.h"
#include "hybrid/protection_domain.h"

namespace diwarp::hybrid {
namespace {

/// The rights of the software half. The hardware's STags follow each other.
Access software_access(Access access) {
  return has(access, Access::any_source) ? access : access | Access::validated_source;
}

}  // namespace

MemoryRegion::MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory,
                           Access access, std::optional<uint64_t> base)
    : domain_(std::move(domain)) {
  const Halves<provider::ProtectionDomain>& domains = domain_->halves();
  halves_ = under_one_stag<Halves<provider::MemoryRegion>>(
      [&] { return domains.hardware->register_memory(memory, access, base, std::nullopt); },
      [](const provider::MemoryRegion& region) { return region.registration().rkey; },
      [&](std::optional<STag> stag) {
        return domains.software->register_memory(memory, software_access(access), base, stag);
      });
  registration_ = halves_.hardware->registration();
  domain_->device()->invalidations().add(registration_.rkey, halves_);
}

MemoryRegion::~MemoryRegion() {
  domain_->device()->invalidations().remove(registration_.rkey);
  halves_.software.reset();
}

void MemoryRegion::invalidate() {
  halves_.software->invalidate();
  halves_.hardware->invalidate();
}

STag SteeringTag::stag() const {
  return (halves_.hardware ? halves_.hardware : halves_.software)->stag();
}

SteeringTagAttributes SteeringTag::query() const {
  if (!halves_.hardware) return halves_.software->query();
  const SteeringTagAttributes software = halves_.software->query();
  return software.valid ? software : halves_.hardware->query();
}

}  // namespace diwarp::hybrid
