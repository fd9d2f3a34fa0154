// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>

#include <diwarp/verbs.h>

#include "fake_rdma_core/memory.h"
#include "fake_rdma_core/objects.h"

namespace fake {

/// A shared receive queue. Its limit is looked at when a receive is taken: one that is set while
/// fewer are posted tells nothing until then.
class Srq : public ibv_srq, public Counted {
 public:
  Srq(Pd& its_pd, const ibv_srq_init_attr& init);
  /// The caller has checked that no queue pair uses it.
  ~Srq();

  Users users;
  Acknowledgements acknowledgements;
  const uint64_t serial;
  diwarp::SharedReceiveQueue inner;

  /// Returns an errno; `bad` is then the request that was refused.
  int post_recv(ibv_recv_wr* first, ibv_recv_wr** bad);
  void modify(const ibv_srq_attr& attributes, int mask);
  ibv_srq_attr query();
  /// A message took a receive.
  void take_note_of_receive();

 private:
  int post_one(const ibv_recv_wr& request);
  void hand_limit_over();

  const uint32_t max_wr_;
  const uint32_t max_sge_;
  Use use_;
  std::mutex mutex_;            // see Adapter: after a queue pair's
  uint32_t waiting_limit_ = 0;  // diwarp, which would tell at once, does not have it yet
};

}  // namespace fake
