// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/queue_pair.h>
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "compat/common/use_count.h"
#include "compat/verbs/async_events.h"
#include "compat/verbs/completion_queue.h"
#include "compat/verbs/extended_posting.h"
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
  /// Posts all `count` requests of a list, or none.
  void post_all_sends(const ibv_send_wr* request, size_t count);

  /// The newer way of posting, if the program asked for it.
  void extend(uint64_t operations);
  ExtendedPosting* extended_posting() const { return extended_.get(); }

  /// What its program sees of a failed completion: false if nothing yet.
  ///
  /// InfiniBand tells nothing of a peer that has gone: receives stay posted, and the next send
  /// finds out. Programs that name their peers by number rely on that: one of both ends first. So
  /// the receives that the library flushes at a connection's end are kept back until the queue pair
  /// fails in another way.
  static bool tell_failure(const WorkCompletion& completion, ibv_wc& told);

 private:
  bool tell(const WorkCompletion& completion, ibv_wc& told);
  void release_kept_back();
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
  std::unique_ptr<ExtendedPosting> extended_;
  std::mutex flush_mutex_;           // guards kept_back_
  std::vector<ibv_wc> kept_back_;    // flushed receives
  std::atomic<bool> failed_{false};  // the program knows
  std::mutex mutex_;                 // of modify(); guards what follows
  std::atomic<ibv_qp_state> step_{IBV_QPS_RESET};
  std::atomic<bool> named_{false};  // its peer was named by ibv_modify_qp()
  ibv_qp_attr kept_{};              // what was said by ibv_modify_qp()
};

/// Throws Refusal(EINVAL) for null.
Qp& qp_of(ibv_qp* qp);

/// As ibv_create_qp_ex(). Throws Refusal or diwarp::Error.
ibv_qp* create_queue_pair(ibv_context& context, ibv_qp_init_attr_ex& init, Qp::Meets meets);

}  // namespace diwarp::compat
