// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include <diwarp/verbs.h>

#include "fake_rdma_core/context.h"
#include "fake_rdma_core/fd_queue.h"
#include "fake_rdma_core/objects.h"

namespace fake {

class Qp;

class CompChannel : public ibv_comp_channel, public Counted {
 public:
  explicit CompChannel(Context& its_context);
  ~CompChannel();

  Users users;
  FdQueue<ibv_cq*> events;

 private:
  Use use_;
};

/// A completion as it lies in a completion queue.
struct CqEntry {
  ibv_wc wc = {};
  Qp* qp = nullptr;
  bool solicited = false;
  bool of_send_queue = false;
  uint64_t position = 0;  ///< of a send: its place among all that were posted
};

/// A completion queue of a fixed size. One that overflows loses what does not fit, and everything
/// that comes later; IBV_EVENT_CQ_ERR tells.
class Cq : public ibv_cq, public Counted {
 public:
  Cq(Context& its_context, int entries, void* its_cq_context, ibv_comp_channel* its_channel);
  /// The caller has checked that no queue pair uses it.
  ~Cq();

  Users users;
  Acknowledgements comp_acknowledgements;
  Acknowledgements async_acknowledgements;
  const uint64_t serial;
  diwarp::CompletionQueue inner;

  int poll(int count, ibv_wc* completions);
  void arm(bool solicited_only);
  void resize(int entries);

  /// Takes over what diwarp has completed.
  void drain();
  /// The same, by the thread of the context; it is called again at the next completion.
  void serve();
  /// Removes the completions of a queue pair that is reset or goes away.
  void purge(const Qp& qp);

 private:
  enum class Armed : uint8_t { no, solicited, any };

  void drain_locked();
  void take_over(const diwarp::WorkCompletion& completion);
  void push(const CqEntry& entry);
  void overflow();

  Use context_use_;
  Use channel_use_;
  std::mutex mutex_;  // see Adapter for the order of locks
  std::deque<CqEntry> entries_;
  Armed armed_ = Armed::no;
  bool dead_ = false;
};

}  // namespace fake
