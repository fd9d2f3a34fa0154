// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "diwarp/detail/handle.h"
#include "diwarp/device.h"
#include "diwarp/types.h"

namespace diwarp {

namespace rnic {
class ProtectionDomain;
class MemoryRegion;
}  // namespace rnic

/// Keeps queue pairs and memory regions together: a queue pair touches only regions of its own
/// protection domain (RFC 5042 section 2.1).
class DIWARP_EXPORT ProtectionDomain {
 public:
  explicit ProtectionDomain(const Device& device);
  const std::shared_ptr<rnic::ProtectionDomain>& impl() const { return impl_.shared(); }

 private:
  detail::Handle<rnic::ProtectionDomain> impl_;
};

/// Memory that the RNIC may use: any memory of the process, not pinned and not copied. It must stay
/// mapped while the region lives. Destruction returns only when nothing can touch the memory any
/// more; work requests that still name it then fail with local_protection_error.
class DIWARP_EXPORT MemoryRegion {
 public:
  /// Registers `memory`. Tagged offsets start at `base`, by default at the memory's address.
  MemoryRegion(const ProtectionDomain& pd, std::span<std::byte> memory,
               Access access = Access::local_write, std::optional<uint64_t> base = std::nullopt);
  MemoryRegion(const ProtectionDomain& pd, void* address, size_t length,
               Access access = Access::local_write, std::optional<uint64_t> base = std::nullopt);

  STag lkey() const;
  STag rkey() const;
  std::byte* address() const;
  size_t length() const;
  uint64_t base() const;
  /// An SGE for `length` bytes from `offset`. Not checked here: posting it is.
  Sge sge(size_t offset, size_t length) const;
  /// An SGE for all of it (at most 4 GiB - 1).
  Sge sge() const;

 private:
  detail::Handle<rnic::MemoryRegion> impl_;
};

}  // namespace diwarp
