// SPDX-License-Identifier: Apache-2.0
#include "diwarp/memory.h"

#include <algorithm>

#include "rnic/device.h"

namespace diwarp {

ProtectionDomain::ProtectionDomain(const Device& device)
    : impl_(std::make_shared<rnic::ProtectionDomain>(device.impl())) {}

MemoryRegion::MemoryRegion(const ProtectionDomain& pd, std::span<std::byte> memory, Access access,
                           std::optional<uint64_t> base)
    : impl_(std::make_shared<rnic::MemoryRegion>(pd.impl(), memory, access, base)) {}

MemoryRegion::MemoryRegion(const ProtectionDomain& pd, void* address, size_t length, Access access,
                           std::optional<uint64_t> base)
    : MemoryRegion(pd, std::span(static_cast<std::byte*>(address), length), access, base) {}

STag MemoryRegion::lkey() const { return impl_->region().stag; }
STag MemoryRegion::rkey() const { return impl_->region().stag; }
std::byte* MemoryRegion::address() const { return impl_->region().memory; }
size_t MemoryRegion::length() const { return impl_->region().length; }
uint64_t MemoryRegion::base() const { return impl_->region().base; }

Sge MemoryRegion::sge(size_t offset, size_t length) const {
  const ddp::Region& region = impl_->region();
  // What an SGE cannot say stays too long, so that posting refuses it.
  const auto said = static_cast<uint32_t>(std::min<size_t>(length, UINT32_MAX));
  return {region.memory + offset, said, region.stag};
}

Sge MemoryRegion::sge() const { return sge(0, length()); }

}  // namespace diwarp
