// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "bridge/owned.h"
#include "bridge/rdma_core.h"
#include "diwarp/types.h"
#include "provider/memory.h"

namespace diwarp::bridge {

class ProtectionDomain;

/// Memory that the device has registered, and the kernel pinned.
class MemoryRegion final : public provider::MemoryRegion {
 public:
  /// Throws Error.
  MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory, Access access,
               std::optional<uint64_t> base);
  ~MemoryRegion() override;

  bool valid() const override { return valid_; }
  /// No request of user space's makes a region invalid on all devices: its registration ends.
  void invalidate() override;

  ibv_mr* get() const { return region_.get(); }
  Access access() const { return access_; }
  /// The device has invalidated it.
  void mark_invalid() { valid_ = false; }

 private:
  void end();

  const std::shared_ptr<ProtectionDomain> domain_;
  const Access access_;
  Owned<ibv_mr> region_;
  std::atomic<bool> valid_{true};
};

/// The rights as libibverbs has them.
int verbs_access(Access access);

}  // namespace diwarp::bridge
