// SPDX-License-Identifier: Apache-2.0
#include "rnic/memory/memory_region.h"

#include <utility>

#include "base/offsets.h"
#include "diwarp/error.h"

namespace diwarp::rnic {

SteeringTag::SteeringTag(std::shared_ptr<ProtectionDomain> domain, ddp::Region region, bool chosen)
    : domain_(std::move(domain)), stag_(region.stag) {
  region.protection_domain = domain_->number();
  ddp::STagTable& regions = domain_->device()->regions();
  // guard(chosen-stag): !regions.insert_chosen(region) => (regions.insert_chosen(region), false)
  if (!chosen)
    stag_ = regions.insert(region);
  else if (!regions.insert_chosen(region))
    throw Error(make_error_code(Errc::invalid_argument),
                "The chosen STag cannot be had: its upper 24 bits must not be zero, nor those of "
                "an STag in use on this device; choose another");
}

SteeringTag::~SteeringTag() { domain_->device()->regions().erase(stag_); }

void SteeringTag::revoke() {
  DeviceContext& device = *domain_->device();
  device.engine().exclusively([&] { device.regions().revoke(stag_); });
}

SteeringTagAttributes SteeringTag::query() const {
  DeviceContext& device = *domain_->device();
  return device.engine().exclusively([&] {
    const ddp::Region& entry = *device.regions().find_any_key(stag_);
    return SteeringTagAttributes{.stag = entry.stag,
                                 .valid = entry.valid,
                                 .base = entry.base,
                                 .length = entry.valid ? entry.length : 0,
                                 .access = entry.valid ? entry.access : Access::none};
  });
}

namespace {

ddp::Region checked_region(std::span<std::byte> memory, Access access, std::optional<uint64_t> base,
                           std::optional<STag> chosen) {
  if (memory.data() == nullptr && !memory.empty())
    throw Error(make_error_code(Errc::invalid_argument),
                "A memory region needs memory: the address is null and the length is not 0");
  const bool peers_write =
      (access & (Access::remote_write | Access::remote_atomic)) != Access::none;
  if (peers_write && !has(access, Access::local_write))
    throw Error(make_error_code(Errc::invalid_argument),
                "A region that peers may write must be writable locally too: add local_write");
  ddp::Region region;
  region.stag = chosen.value_or(0);
  region.access = access;
  region.memory = memory.data();
  region.length = memory.size();
  region.base = base.value_or(reinterpret_cast<uintptr_t>(memory.data()));
  if (wraps(region.base, region.length))  // guard(region-wrap): condition => false
    throw Error(make_error_code(Errc::invalid_argument),
                "The region's tagged offsets would pass 2^64; choose a lower base");
  return region;
}

}  // namespace

MemoryRegion::MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory,
                           Access access, std::optional<uint64_t> base, std::optional<STag> chosen)
    : MemoryRegion(std::move(domain), checked_region(memory, access, base, chosen),
                   chosen.has_value()) {}

MemoryRegion::MemoryRegion(std::shared_ptr<ProtectionDomain> domain, const ddp::Region& region,
                           bool chosen)
    : tag_(std::move(domain), region, chosen) {
  registration_ = {.lkey = tag_.stag(),
                   .rkey = tag_.stag(),
                   .memory = region.memory,
                   .length = region.length,
                   .base = region.base};
}

}  // namespace diwarp::rnic
