// SPDX-License-Identifier: Apache-2.0
#include "diwarp/memory.h"

#include <algorithm>
#include <utility>

#include "provider/device.h"
#include "provider/memory.h"
#include "provider/protection_domain.h"
#include "verbs/handle_access.h"

namespace diwarp {

ProtectionDomain::ProtectionDomain(const Device& device)
    : impl_(impl_of(device)->make_protection_domain()) {}

MemoryRegion::MemoryRegion(const ProtectionDomain& pd, std::span<std::byte> memory, Access access,
                           std::optional<uint64_t> base)
    : impl_(impl_of(pd)->register_memory(memory, access, base, std::nullopt)) {}

MemoryRegion::MemoryRegion(const ProtectionDomain& pd, void* address, size_t length, Access access,
                           std::optional<uint64_t> base)
    : MemoryRegion(pd, std::span(static_cast<std::byte*>(address), length), access, base) {}

MemoryRegion::MemoryRegion(std::shared_ptr<provider::MemoryRegion> impl) : impl_(std::move(impl)) {}

MemoryRegion MemoryRegion::with_stag(const ProtectionDomain& pd, std::span<std::byte> memory,
                                     STag stag, uint64_t base, Access access) {
  return MemoryRegion(impl_of(pd)->register_memory(memory, access, base, stag));
}

MemoryWindow::MemoryWindow(const ProtectionDomain& pd)
    : impl_(impl_of(pd)->make_window(std::nullopt)) {}

STag MemoryWindow::stag() const { return impl_->stag(); }
SteeringTagAttributes MemoryWindow::query() const { return impl_->query(); }

FastRegistration::FastRegistration(const ProtectionDomain& pd, uint64_t max_length)
    : impl_(impl_of(pd)->make_fast_registration(max_length)) {}

STag FastRegistration::stag() const { return impl_->stag(); }
SteeringTagAttributes FastRegistration::query() const { return impl_->query(); }

bool MemoryRegion::valid() const { return impl_->valid(); }
STag MemoryRegion::lkey() const { return impl_->registration().lkey; }
STag MemoryRegion::rkey() const { return impl_->registration().rkey; }
std::byte* MemoryRegion::address() const { return impl_->registration().memory; }
size_t MemoryRegion::length() const { return impl_->registration().length; }
uint64_t MemoryRegion::base() const { return impl_->registration().base; }

Sge MemoryRegion::sge(size_t offset, size_t length) const {
  const provider::Registration& registered = impl_->registration();
  // A length that an SGE cannot say stays too long, so that posting refuses it.
  const auto said = static_cast<uint32_t>(std::min<size_t>(length, UINT32_MAX));
  return {registered.memory + offset, said, registered.lkey};
}

Sge MemoryRegion::sge() const { return sge(0, length()); }

}  // namespace diwarp
