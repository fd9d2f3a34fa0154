// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include <diwarp/verbs.h>

#include "fake_rdma_core/completion_queue.h"
#include "fake_rdma_core/memory.h"
#include "fake_rdma_core/objects.h"

namespace fake {

/// A queue pair. As in hardware a place of the send queue is free again when the program has polled
/// the completion of its request or of a later one: unsignaled requests that no signaled one
/// follows fill the queue. A place of the receive queue is free when its completion has been
/// polled.
class Qp : public ibv_qp, public Counted {
 public:
  Qp(Pd& its_pd, const ibv_qp_init_attr& init);
  ~Qp();

  Acknowledgements acknowledgements;

  /// These return an errno; `bad` is then the request that was refused.
  int post_send(ibv_send_wr* first, ibv_send_wr** bad);
  int post_recv(ibv_recv_wr* first, ibv_recv_wr** bad);
  void modify(ibv_qp_state to);
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init);

  /// What a program sees of a completion; nothing where it was not asked for.
  std::optional<CqEntry> complete(const diwarp::WorkCompletion& completion);
  /// The program has polled it.
  void retire(const CqEntry& entry);

  diwarp::QueuePair& inner() { return *inner_; }
  /// Requests of the send queue that are not done.
  bool has_pending_sends();

 private:
  struct Send {
    uint64_t wr_id = 0;
    bool signaled = false;
  };

  diwarp::QueuePairInit inner_init(const ibv_qp_init_attr& init) const;
  bool is_ending() const;
  int post_one(const ibv_send_wr& request);
  int post_one(const ibv_recv_wr& request);
  std::optional<CqEntry> complete_send(const diwarp::WorkCompletion& completion);
  CqEntry complete_receive(const diwarp::WorkCompletion& completion);
  void reset();
  void show_state(ibv_qp_state now);

  const ibv_qp_init_attr init_;
  Use pd_use_;
  Use send_cq_use_;
  Use recv_cq_use_;
  Use srq_use_;
  std::optional<diwarp::QueuePair> inner_;

  std::mutex mutex_;        // see Adapter for the order of locks
  std::deque<Send> sends_;  // posted and not done
  uint64_t next_ = 0;       // position of the next send
  uint64_t first_ = 0;      // of sends_.front()
  uint64_t retired_ = 0;    // sends before this one have given their places back
  uint32_t receives_ = 0;   // places of the receive queue that are taken
};

/// As ibv_qp_init_attr::cap has it for this queue pair: what was asked for.
ibv_qp_cap checked_capacity(const ibv_qp_init_attr& init);

}  // namespace fake
