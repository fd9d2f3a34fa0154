// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_events.h"

#include <algorithm>
#include <utility>

#include "compat/common/addresses.h"

namespace diwarp::compat {
namespace {

constexpr uint32_t kGroupNumber = 0xffffff;

/// Of an address handle that leads there.
ibv_ah_attr attributes_towards(const Address& address) {
  ibv_ah_attr made{};
  const auto gid = gid_bytes(address);
  std::copy(gid.begin(), gid.end(), made.grh.dgid.raw);
  made.grh.hop_limit = 1;
  made.is_global = 1;
  made.port_num = 1;
  return made;
}

}  // namespace

PendingCmEvent plain_event(rdma_cm_event_type type, int status) {
  PendingCmEvent pending;
  pending.event.event = type;
  pending.event.status = status;
  return pending;
}

PendingCmEvent answer_event(UdAnswerMessage& answer, const Address& service) {
  const bool accepted = answer.status == UdStatus::accepted;
  PendingCmEvent pending =
      plain_event(accepted ? RDMA_CM_EVENT_ESTABLISHED : RDMA_CM_EVENT_UNREACHABLE,
                  static_cast<int>(answer.status));
  pending.private_data = std::move(answer.private_data);
  if (!accepted) return pending;
  rdma_ud_param& ud = pending.event.param.ud;
  ud.ah_attr = attributes_towards(service);
  ud.qp_num = answer.queue_pair;
  ud.qkey = answer.q_key;
  return pending;
}

PendingCmEvent unreachable_event(int status) {
  return plain_event(RDMA_CM_EVENT_UNREACHABLE, status);
}

PendingCmEvent request_event(UdRequest request, std::vector<std::byte> private_data) {
  PendingCmEvent pending = plain_event(RDMA_CM_EVENT_CONNECT_REQUEST, 0);
  pending.private_data = std::move(private_data);
  pending.ud_request.emplace(std::move(request));
  return pending;
}

PendingCmEvent group_event(const Address& group, void* program_context, uint32_t q_key) {
  PendingCmEvent pending = plain_event(RDMA_CM_EVENT_MULTICAST_JOIN, 0);
  rdma_ud_param& ud = pending.event.param.ud;
  ud.private_data = program_context;
  ud.ah_attr = attributes_towards(group);
  ud.qp_num = kGroupNumber;
  ud.qkey = q_key;
  return pending;
}

}  // namespace diwarp::compat
