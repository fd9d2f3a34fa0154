// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/queue_pair.h>
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "compat/common/use_count.h"
#include "compat/verbs/async_events.h"
#include "compat/verbs/completion_queue.h"
#include "compat/verbs/extended_posting.h"
#include "compat/verbs/meeting_numbers.h"
#include "compat/verbs/memory.h"
#include "compat/verbs/sges.h"
#include "compat/verbs/shared_receive_queue.h"

namespace diwarp::compat {

/// A queue pair as programs get it, with room for the fields that newer headers have at its end.
struct QpBlock : ibv_qp_ex {
  std::array<uint64_t, 2> newer{};
};

/// What queue pairs of both types have. `step_` is how far the program has led it by
/// ibv_modify_qp(), which is further than the library's queue pair is, or less far.
class Qp : public QpBlock {
 public:
  virtual ~Qp();
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;

  ibv_qp* handle() { return &qp_base; }
  diwarp::QueuePair& queue_pair() { return queue_pair_; }
  const diwarp::QueuePair& queue_pair() const { return queue_pair_; }
  Pd& domain() const { return domain_; }
  AsyncEvents& events() { return events_; }

  virtual ibv_qp_state current_state() const = 0;
  virtual void modify(const ibv_qp_attr& attributes, int mask) = 0;
  virtual void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) = 0;

  /// Post lists of requests. Throw Refusal; `*bad` is then the request that was refused.
  void post_sends(const ibv_send_wr* request, ibv_send_wr** bad);
  void post_receives(ibv_recv_wr* request, ibv_recv_wr** bad);
  /// Posts all `count` requests of a list, or none.
  void post_all_sends(const ibv_send_wr* request, size_t count);

  /// Of one request.
  size_t max_send_sges() const;
  size_t max_inline_data() const;

  /// The newer way of posting, if the program asked for it.
  void extend(uint64_t operations);
  ExtendedPosting* extended_posting() const { return extended_.get(); }

  /// What the program sees of a failed completion that was polled from `from`: false if nothing
  /// yet.
  static bool tell_failure(Cq& from, const WorkCompletion& completion, ibv_wc& told);

  /// Before its destruction: what hardware would have sent long since goes out. Waits for a while
  /// at most.
  virtual void finish_sends() {}
  /// Throws Refusal(EBUSY) for one that may not be destroyed yet.
  virtual void check_unused() const {}

 protected:
  /// `made` are the library's parameters for what `init` asks for; the capacities that were granted
  /// are written into `init`. `numbers`, from which the queue pair's is taken, may be null.
  Qp(Pd& domain, ibv_qp_init_attr& init, const QueuePairInit& made, MeetingNumbers* numbers);

  virtual SendWorkRequest translated(const ibv_send_wr& request, const Sges& sges) = 0;
  virtual bool tell(const WorkCompletion&, ibv_wc&) { return true; }

  void reset();
  void leave_reset();
  void fail();
  std::mutex& modify_mutex() { return mutex_; }
  ibv_qp_state step() const { return step_.load(std::memory_order_relaxed); }
  void set_step(ibv_qp_state step) { step_ = step; }
  const ibv_qp_init_attr& init() const { return init_; }

 private:
  Sges sges_of(const ibv_send_wr& request) const;

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
  std::mutex mutex_;  // of modify(), which alone writes step_
  std::atomic<ibv_qp_state> step_{IBV_QPS_RESET};
};

/// Throws Refusal(EINVAL) for null.
Qp& qp_of(ibv_qp* qp);

/// How an RC queue pair gets its peer: the program names it in ibv_modify_qp(), or the connection
/// manager connects it, which needs no port for meetings.
enum class Meets : uint8_t { by_name, by_cm };

/// As ibv_create_qp_ex(). A UD queue pair sends to groups by `group_interface`, where that is not
/// empty. Throws Refusal or diwarp::Error.
ibv_qp* create_queue_pair(ibv_context& context, ibv_qp_init_attr_ex& init, Meets meets,
                          const std::string& group_interface = {});

}  // namespace diwarp::compat
