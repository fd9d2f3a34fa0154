// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "bridge/owned.h"
#include "bridge/rdma_core.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "provider/memory.h"

namespace diwarp::bridge {

class ProtectionDomain;

/// Requests to bind one window that have not completed.
inline constexpr size_t kMostBindings = 16;

/// A memory window of type 2.
class SteeringTag final : public provider::SteeringTag {
 public:
  /// Throws Error.
  explicit SteeringTag(std::shared_ptr<ProtectionDomain> domain);
  ~SteeringTag() override;

  STag stag() const override { return stag_; }
  SteeringTagAttributes query() const override;

  ibv_mw* get() const { return window_.get(); }
  /// A request to bind it is posted. False where too many are.
  bool add_binding(const MemoryBinding& binding);
  /// That request has ended; `bound`: with success.
  void end_binding(const MemoryBinding& binding, bool bound);
  void invalidate(STag stag, bool by_peer);
  /// The region with this STag has gone.
  void unbind_from(STag region);
  /// The window goes if it may be bound to the region with this STag.
  void end_if_of(STag region);

 private:
  struct Binding {
    STag stag;
    STag region;
    bool over;  // what it names was taken back, or has gone, before its completion was polled
  };

  const std::shared_ptr<ProtectionDomain> domain_;
  Owned<ibv_mw> window_;
  STag stag_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  SteeringTagAttributes attributes_;
  STag region_ = 0;                // that it is bound to
  std::vector<Binding> bindings_;  // that are posted, in order; never more than it has room for
};

}  // namespace diwarp::bridge
