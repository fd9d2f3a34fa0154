// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include <diwarp/verbs.h>

#include "fake_rdma_core/context.h"
#include "fake_rdma_core/objects.h"

/// Protection domains, regions and windows.
namespace fake {

class Pd : public ibv_pd, public Counted {
 public:
  explicit Pd(Context& its_context);

  Users users;
  const diwarp::ProtectionDomain inner;

 private:
  Use use_;
};

class Mr : public ibv_mr, public Counted {
 public:
  Mr(Pd& its_pd, void* address, size_t size, uint64_t iova, unsigned access);
  ~Mr();

  uint64_t iova() const { return iova_; }

 private:
  Use use_;
  const uint64_t iova_;
  const diwarp::MemoryRegion inner_;
};

/// Of type 2. Programs count its rkey up themselves when they bind it.
class Mw : public ibv_mw, public Counted {
 public:
  explicit Mw(Pd& its_pd);

 private:
  Use use_;
  const diwarp::MemoryWindow inner_;
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
