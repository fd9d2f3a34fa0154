// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/queue_pair.h>
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "compat/common/use_count.h"
#include "compat/verbs/async_events.h"
#include "compat/verbs/completion_queue.h"
#include "compat/verbs/meeting_numbers.h"
#include "compat/verbs/memory.h"
#include "compat/verbs/shared_receive_queue.h"

namespace diwarp::compat {

/// A queue pair as programs get it, with room for the fields that newer headers have at its end.
struct QpBlock : ibv_qp_ex {
  std::array<uint64_t, 2> newer{};
};

/// An RC queue pair. The library's is in init from the beginning; `step_` is how far the program
/// has led it by ibv_modify_qp(), until a connection begins.
class Qp : public QpBlock {
 public:
  /// How its peer comes: it is named in ibv_modify_qp(), or, perhaps, by the connection manager; or
  /// by that alone, which needs no port for meetings.
  enum class Meets : uint8_t { by_name, by_cm };

  /// Writes the capacities that were granted into `init`.
  Qp(Pd& domain, ibv_qp_init_attr& init, Meets meets);
  ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  ibv_qp* handle() { return &qp_base; }
  diwarp::QueuePair& queue_pair() { return queue_pair_; }
  Pd& domain() const { return domain_; }
  AsyncEvents& events() { return events_; }

  ibv_qp_state current_state() const;
  void modify(const ibv_qp_attr& attributes, int mask);
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init);

  /// Post lists of requests. Throw Refusal; `*bad` is then the request that was refused.
  void post_sends(const ibv_send_wr* request, ibv_send_wr** bad);
  void post_receives(ibv_recv_wr* request, ibv_recv_wr** bad);

 private:
  void move_to(const ibv_qp_attr& attributes, int mask);
  void to_rtr(const ibv_qp_attr& attributes, int mask);
  void to_rts();
  void reset();
  void leave_reset();
  void drain();
  void fail();

  Pd& domain_;
  const Use of_domain_;
  const Use of_send_cq_;
  const Use of_recv_cq_;
  const Use of_srq_;
  AsyncEvents events_;
  const ibv_qp_init_attr init_;
  const MeetingNumber number_;
  diwarp::QueuePair queue_pair_;
  std::mutex mutex_;  // of modify(); guards what follows
  std::atomic<ibv_qp_state> step_{IBV_QPS_RESET};
  std::atomic<bool> named_{false};  // its peer was named by ibv_modify_qp()
  ibv_qp_attr kept_{};              // what was said by ibv_modify_qp()
};

/// Throws Refusal(EINVAL) for null.
Qp& qp_of(ibv_qp* qp);

}  // namespace diwarp::compat
