// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include <diwarp/verbs.h>

#include "fake_rdma_core/context.h"
#include "fake_rdma_core/objects.h"

/// Protection domains, regions and windows.
namespace fake {

class Mr;
class Mw;

class Pd : public ibv_pd, public Counted {
 public:
  explicit Pd(Context& its_context);

  void add(Mw& window);
  void remove(Mw& window);
  bool has_window_of(const Mr& region);

  Users users;
  const diwarp::ProtectionDomain inner;

 private:
  Use use_;
  std::mutex mutex_;
  std::vector<Mw*> windows_;  // guarded by mutex_
};

class Mr : public ibv_mr, public Counted {
 public:
  Mr(Pd& its_pd, void* address, size_t size, uint64_t iova, unsigned access);
  ~Mr();

  uint64_t iova() const { return iova_; }
  /// Refuses with EBUSY while a window is bound to it.
  void check_unbound() const;

 private:
  Use use_;
  const uint64_t iova_;
  const diwarp::MemoryRegion inner_;
};

/// Of type 2. Programs count its rkey up themselves when they bind it.
class Mw : public ibv_mw, public Counted {
 public:
  explicit Mw(Pd& its_pd);
  ~Mw();

  /// A request to bind it is posted.
  void note_binding(uint32_t key, const Mr& region);
  bool is_bound_to(const Mr& region);

 private:
  Use use_;
  const diwarp::MemoryWindow inner_;
  std::mutex mutex_;
  std::map<uint32_t, const Mr*> regions_;  // guarded by mutex_; of the newest binding by key
};

/// Refuses with EINVAL what no region or window may have.
diwarp::Access access_of(unsigned flags);

/// The keys that the next regions get.
void choose_key(uint32_t key);
void clear_chosen_keys();

/// ibv_fork_init() and ibv_is_fork_initialized().
int init_fork();
ibv_fork_status fork_status();
void clear_fork();

}  // namespace fake
