// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <optional>

#include "fuzz/input.h"
#include "fuzz/rc_memory.h"

namespace diwarp::fuzz {

/// Regions with all kinds of rights, a memory window and a fast registration: what peers may name,
/// and what requests use.
class RcRegions {
 public:
  /// Of what requests use: known also after a region was deregistered.
  struct Keys {
    STag inbox = 0, sink = 0, results = 0, outbox = 0;
  };

  RcRegions(RcMemory& memory, const ProtectionDomain& pd, const ProtectionDomain& other_pd);

  const Keys& keys() const { return keys_; }
  STag closed_key() const { return closed_->lkey(); }
  /// 0 to 7. A region that was deregistered is named by what is no STag.
  STag stag(unsigned which) const;
  MemoryBinding window_binding(unsigned how) const;
  MemoryBinding fast_binding(unsigned how) const;
  void deregister(Input& in);
  /// The regions that receives and Reads go to.
  void deregister_sinks();

 private:
  using Region = std::optional<MemoryRegion>;

  RcMemory& memory_;
  Region open_, read_only_, closed_, foreign_, bound_, inbox_, sink_, results_, outbox_;
  std::optional<MemoryWindow> window_;
  std::optional<FastRegistration> fast_;
  Keys keys_;
};

}  // namespace diwarp::fuzz
