// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>

#include "bridge/owned.h"
#include "bridge/rdma_core.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "provider/memory.h"

namespace diwarp::bridge {

class ProtectionDomain;

/// A memory window of type 2.
class SteeringTag final : public provider::SteeringTag {
 public:
  /// Throws Error.
  explicit SteeringTag(std::shared_ptr<ProtectionDomain> domain);
  ~SteeringTag() override;

  STag stag() const override { return stag_; }
  SteeringTagAttributes query() const override;

  ibv_mw* get() const { return window_.get(); }
  void will_be_bound(const MemoryBinding& binding);
  void bound(const MemoryBinding& binding);
  void invalidate();
  /// The region with this STag goes.
  void unbind_from(STag region);
  /// The same, and the window goes with it if it was bound to it.
  void end_if_of(STag region);

 private:
  const std::shared_ptr<ProtectionDomain> domain_;
  Owned<ibv_mw> window_;
  STag stag_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  SteeringTagAttributes attributes_;
  STag region_ = 0;  // that it is bound to, or is to be
};

}  // namespace diwarp::bridge
