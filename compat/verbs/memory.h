// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/memory.h>
#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "compat/common/use_count.h"
#include "compat/verbs/context.h"

namespace diwarp::compat {

/// The regions of a protection domain whose tagged offsets do not begin at their address. Programs
/// name memory by these offsets in local SGEs, too, where the library takes addresses.
class OffsetRegions {
 public:
  void add(uint32_t key, const void* address, uint64_t base);
  void remove(uint32_t key);
  bool empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  /// The SGEs with addresses in place of offsets.
  void translate(std::span<Sge> sges) const;

 private:
  mutable std::mutex mutex_;                          // guards what follows
  std::unordered_map<uint32_t, uint64_t> distances_;  // from offset to address, by key
  std::atomic<size_t> count_{0};
};

/// A protection domain. It is gone when the program has deallocated it and no region is left.
class Pd : public ibv_pd {
 public:
  /// The program's; deallocated by end().
  static Pd* make(Context& context);
  explicit Pd(Context& context);
  Pd(const Pd&) = delete;
  Pd& operator=(const Pd&) = delete;

  std::shared_ptr<Pd> shared() const { return self_; }

  Engine& engine() { return engine_; }
  diwarp::ProtectionDomain& domain() { return domain_; }
  void note_queue_pair() { had_queue_pair_ = true; }

  /// Throws Refusal(EBUSY) while anything rests on it. Regions alone do not count once it has had
  /// queue pairs, and these are gone: some programs leave a region behind when they end (ib_send_bw
  /// over iWARP, without the connection manager), and take a failure here for one of theirs.
  void check_unused() const;
  void end();

  UseCount users;  ///< but for regions
  UseCount regions;
  OffsetRegions offset_regions;

 private:
  std::shared_ptr<Pd> self_;  // until end()
  std::optional<Use> of_context_;
  std::atomic<bool> had_queue_pair_{false};
  Engine& engine_;
  diwarp::ProtectionDomain domain_;
};

/// Throws Refusal(EINVAL) for null.
Pd& pd_of(ibv_pd* pd);

class Mr : public ibv_mr {
 public:
  /// `base`: where the region's tagged offsets begin. `rights` are IBV_ACCESS_*.
  Mr(std::shared_ptr<Pd> domain, void* memory, size_t bytes, uint64_t base, unsigned rights);
  ~Mr();
  Mr(const Mr&) = delete;
  Mr& operator=(const Mr&) = delete;

 private:
  const std::shared_ptr<Pd> domain_;
  const Use of_domain_;
  diwarp::MemoryRegion region_;
};

class Mw : public ibv_mw {
 public:
  /// `kind`: IBV_MW_TYPE_2 is the only one there is.
  Mw(Pd& domain, ibv_mw_type kind);

 private:
  const Use of_domain_;
  diwarp::MemoryWindow window_;
};

/// The library's rights for those of libibverbs. Throws Refusal for one that is not known.
Access access_of(unsigned rights);

}  // namespace diwarp::compat
