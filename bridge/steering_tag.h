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

/// Requests to bind one window that the device has not completed.
inline constexpr size_t kMostBindings = 16;

/// How a request to bind a window ended.
enum class BindingEnd : uint8_t { bound, failed, unknown };

/// A memory window of type 2.
class SteeringTag final : public provider::SteeringTag {
 public:
  /// Throws Error.
  explicit SteeringTag(std::shared_ptr<ProtectionDomain> domain);
  ~SteeringTag() override;

  STag stag() const override { return stag_; }
  SteeringTagAttributes query() const override;

  ibv_mw* get() const { return window_.get(); }
  bool has_binding_left() const;
  /// A request to bind it is posted. Returns its number; 0 where too many are.
  uint64_t add_binding(const MemoryBinding& binding);
  void end_binding(const MemoryBinding& binding, uint64_t number, BindingEnd end);
  void invalidate(STag stag, bool by_peer);
  /// The region with this STag has gone.
  void unbind_from(STag region);
  /// The window goes if it may be bound to the region with this STag.
  void end_if_of(STag region);

 private:
  struct Binding {
    uint64_t number;
    STag stag;
    STag region;
    bool over;  // what it names was taken back, or has gone, before its completion was polled
  };

  const std::shared_ptr<ProtectionDomain> domain_;
  Owned<ibv_mw> window_;
  STag stag_ = 0;
  mutable std::mutex mutex_;  // guards what follows
  SteeringTagAttributes attributes_;
  STag region_ = 0;                // that it is bound to, or may be
  uint64_t last_binding_ = 0;      // its number
  uint64_t newest_bound_ = 0;      // of the bindings that were successful
  std::vector<Binding> bindings_;  // that are posted, in order; never more than it has room for
};

}  // namespace diwarp::bridge
