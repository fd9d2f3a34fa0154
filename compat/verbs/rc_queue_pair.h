// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "compat/verbs/queue_pair.h"

namespace diwarp::compat {

/// An RC queue pair. The library's is in init from the beginning; what the program has reached by
/// ibv_modify_qp() counts until a connection begins.
///
/// InfiniBand tells nothing of a peer that has gone: receives stay posted, and the next send finds
/// out. Programs that name their peers by number rely on that: one of both ends first. So the
/// receives that the library flushes at a connection's end are kept back until the queue pair fails
/// in another way.
class RcQp final : public Qp {
 public:
  /// Writes the capacities that were granted into `init`.
  RcQp(Pd& domain, ibv_qp_init_attr& init, Meets meets);

  ibv_qp_state current_state() const override;
  void modify(const ibv_qp_attr& attributes, int mask) override;
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) override;

 private:
  SendWorkRequest translated(const ibv_send_wr& request, const Sges& sges) override;
  bool tell(const WorkCompletion& completion, ibv_wc& told) override;
  void release_kept_back();
  void move_to(const ibv_qp_attr& attributes, int mask);
  bool is_led_by_connection() const;
  void to_rtr(const ibv_qp_attr& attributes, int mask);
  void to_rts(const ibv_qp_attr& attributes);
  void begin_anew();
  void fail_for_program();

  std::mutex flush_mutex_;           // guards kept_back_
  std::vector<ibv_wc> kept_back_;    // flushed receives
  std::atomic<bool> failed_{false};  // the program knows
  std::atomic<bool> named_{false};   // its peer was named by ibv_modify_qp()
  ibv_qp_attr kept_{};               // what was said by ibv_modify_qp(), under modify_mutex()
};

}  // namespace diwarp::compat
