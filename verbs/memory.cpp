// SPDX-License-Identifier: Apache-2.0
#include "diwarp/memory.h"

#include <algorithm>
#include <utility>

#include "rnic/device.h"
#include "rnic/memory/memory_region.h"
#include "verbs/handle_access.h"

namespace diwarp {

ProtectionDomain::ProtectionDomain(const Device& device)
    : impl_(std::make_shared<rnic::ProtectionDomain>(impl_of(device))) {}

MemoryRegion::MemoryRegion(const ProtectionDomain& pd, std::span<std::byte> memory, Access access,
                           std::optional<uint64_t> base)
    : impl_(std::make_shared<rnic::MemoryRegion>(impl_of(pd), memory, access, base)) {}

MemoryRegion::MemoryRegion(const ProtectionDomain& pd, void* address, size_t length, Access access,
                           std::optional<uint64_t> base)
    : MemoryRegion(pd, std::span(static_cast<std::byte*>(address), length), access, base) {}

MemoryRegion::MemoryRegion(std::shared_ptr<rnic::MemoryRegion> impl) : impl_(std::move(impl)) {}

MemoryRegion MemoryRegion::with_stag(const ProtectionDomain& pd, std::span<std::byte> memory,
                                     STag stag, uint64_t base, Access access) {
  return MemoryRegion(
      std::make_shared<rnic::MemoryRegion>(impl_of(pd), memory, access, base, stag));
}

MemoryWindow::MemoryWindow(const ProtectionDomain& pd)
    : impl_(std::make_shared<rnic::SteeringTag>(
          impl_of(pd), ddp::Region{.kind = ddp::EntryKind::window, .valid = false})) {}

STag MemoryWindow::stag() const { return impl_->stag(); }
SteeringTagAttributes MemoryWindow::query() const { return impl_->query(); }

FastRegistration::FastRegistration(const ProtectionDomain& pd, uint64_t max_length)
    : impl_(std::make_shared<rnic::SteeringTag>(
          impl_of(pd), ddp::Region{.kind = ddp::EntryKind::fast_registration,
                                   .valid = false,
                                   .max_length = max_length})) {}

STag FastRegistration::stag() const { return impl_->stag(); }
SteeringTagAttributes FastRegistration::query() const { return impl_->query(); }

bool MemoryRegion::valid() const { return impl_->valid(); }
STag MemoryRegion::lkey() const { return impl_->region().stag; }
STag MemoryRegion::rkey() const { return impl_->region().stag; }
std::byte* MemoryRegion::address() const { return impl_->region().memory; }
size_t MemoryRegion::length() const { return impl_->region().length; }
uint64_t MemoryRegion::base() const { return impl_->region().base; }

Sge MemoryRegion::sge(size_t offset, size_t length) const {
  const ddp::Region& region = impl_->region();
  // A length that an SGE cannot say stays too long, so that posting refuses it.
  const auto said = static_cast<uint32_t>(std::min<size_t>(length, UINT32_MAX));
  return {region.memory + offset, said, region.stag};
}

Sge MemoryRegion::sge() const { return sge(0, length()); }

}  // namespace diwarp
