// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <string>

#include <mutex>
#include <vector>

#include "compat/verbs/queue_pair.h"

namespace diwarp::compat {

/// A UD queue pair, whose number is its UDP port. The library's is in rts from RTR on, so that
/// nothing is lost that comes between RTR and RTS.
class UdQp final : public Qp {
 public:
  /// Writes the capacities that were granted into `init`. `group_interface`: by which messages to
  /// groups leave; empty: the system's choice.
  UdQp(Pd& domain, ibv_qp_init_attr& init, Meets meets, const std::string& group_interface);
  ibv_qp_state current_state() const override;
  void modify(const ibv_qp_attr& attributes, int mask) override;
  void query(ibv_qp_attr& attributes, ibv_qp_init_attr& init) override;
  void finish_sends() override;
  /// In a group it may not, but for one of an id, whose end nobody is told of.
  void check_unused() const override;

  /// A member of the group already: nothing happens.
  void join(const Address& group);
  /// Throws Refusal(EINVAL) where it is no member.
  void leave(const Address& group);

 private:
  SendWorkRequest translated(const ibv_send_wr& request, const Sges& sges) override;
  void set_q_key(uint32_t q_key);
  Address destination_of(const ibv_send_wr& request) const;
  void move_to(ibv_qp_state state);

  const Meets meets_;
  std::atomic<uint32_t> q_key_{0};
  std::atomic<uint32_t> sq_psn_{0};  // nothing depends on it
  mutable std::mutex groups_mutex_;  // guards groups_
  std::vector<Address> groups_;      // as ibv_attach_mcast() has joined
};

}  // namespace diwarp::compat
