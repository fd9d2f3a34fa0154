// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "diwarp/attributes.h"
#include "diwarp/detail/handle.h"
#include "diwarp/device.h"
#include "diwarp/types.h"

namespace diwarp {

namespace provider {
class ProtectionDomain;
class MemoryRegion;
class SteeringTag;
}  // namespace provider

/// Keeps queue pairs and memory regions together: a queue pair touches only regions of its own
/// protection domain (RFC 5042 section 2.1).
class DIWARP_EXPORT ProtectionDomain {
 public:
  explicit ProtectionDomain(const Device& device);

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::ProtectionDomain> impl_;
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

  /// Registers `memory` under an STag that the application chose, its tagged offsets starting at
  /// `base`: the members of a group agree on both, so that one Write-Record to the group goes to
  /// the memory of each. A peer that learns or guesses a chosen STag can use the region as `access`
  /// allows (other STags are random): see docs/datagrams.md. Throws Error(invalid_argument) if the
  /// STag's upper 24 bits are zero, or those of an STag in use.
  static MemoryRegion with_stag(const ProtectionDomain& pd, std::span<std::byte> memory, STag stag,
                                uint64_t base, Access access);

  STag lkey() const;
  /// The same STag, for peers.
  STag rkey() const;
  /// False once it was invalidated: nothing can use it any more, and it can only be destroyed.
  bool valid() const;
  std::byte* address() const;
  size_t length() const;
  uint64_t base() const;
  /// An SGE for `length` bytes from `offset`. Not checked here: posting it is.
  Sge sge(size_t offset, size_t length) const;
  /// An SGE for all of it (at most 4 GiB - 1).
  Sge sge() const;

 private:
  friend class detail::HandleAccess;
  explicit MemoryRegion(std::shared_ptr<provider::MemoryRegion> impl);
  detail::Handle<provider::MemoryRegion> impl_;
};

/// A memory window (type 2): an STag that a bind_window request lends to a part of a memory region,
/// for the peer of one queue pair. Invalid until then, and again after it is invalidated by either
/// side, or its region is deregistered.
class DIWARP_EXPORT MemoryWindow {
 public:
  explicit MemoryWindow(const ProtectionDomain& pd);

  /// The STag as it was given. A binding may change its low 8 bits, the key; with a new key each
  /// time, STags that were given to peers earlier name nothing.
  STag stag() const;
  SteeringTagAttributes query() const;

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::SteeringTag> impl_;
};

/// An STag for memory that is named later, by a register_memory request (fast registration): at
/// most `max_length` bytes at a time. Invalid until then, and again after it is invalidated.
class DIWARP_EXPORT FastRegistration {
 public:
  FastRegistration(const ProtectionDomain& pd, uint64_t max_length);

  /// As MemoryWindow::stag().
  STag stag() const;
  SteeringTagAttributes query() const;

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::SteeringTag> impl_;
};

}  // namespace diwarp
