// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "compat/verbs/queue_pair.h"

namespace diwarp::compat {

/// A UD queue pair, whose number is its UDP port. The library's is in rts from RTR on, so that
/// nothing is lost that comes between RTR and RTS.
class UdQp final : public Qp {
 public:
  /// Writes the capacities that were granted into `init`. `group_interface`: by which messages to
  /// groups leave; empty: the system's choice.
  UdQp(Pd& domain, ibv_qp_init_attr& init, const std::string& group_interface);
  ibv_qp_state current_state() const override;
  void modify(const ibv_qp_attr& attributes, int mask) override;
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) override;
  void finish_sends() override;

 private:
  SendWorkRequest translated(const ibv_send_wr& request, const Sges& sges) override;
  void set_q_key(uint32_t q_key);
  Address destination_of(const ibv_send_wr& request) const;
  void move_to(ibv_qp_state state);

  std::atomic<uint32_t> q_key_{0};
};

}  // namespace diwarp::compat
