// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/queue_pair_init.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "compat/common/log.h"
#include "compat/common/settings.h"
#include "compat/verbs/attributes.h"
#include "compat/verbs/completion_queue.h"
#include "compat/verbs/shared_receive_queue.h"

namespace diwarp::compat {
namespace {

/// Programs may change memory before a Write of it completes, as adapters let them: QEMU moves the
/// memory of a guest that runs. Servers may speak first: that of ib_write_lat does.
StreamOptions stream_options() {
  StreamOptions options{.copy_payload = true, .responder_begins = true};
  const Duration wait = settings().receive_wait;
  if (wait == Duration::zero())
    options.receive_not_ready = ReceiveNotReady::terminate;
  else
    options.receive_wait = wait;
  return options;
}

void check_type(ibv_qp_type type) {
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_UD:
      return;
    case IBV_QPT_UC:
      unsupported("ibv_create_qp of type UC");
    case IBV_QPT_RAW_PACKET:
      unsupported("ibv_create_qp of type raw packet");
    case IBV_QPT_XRC_SEND:
    case IBV_QPT_XRC_RECV:
      unsupported("ibv_create_qp of an XRC type");
    case IBV_QPT_DRIVER:
      unsupported("ibv_create_qp of a driver's type");
    default:
      throw Refusal(EINVAL);
  }
}

/// What both types have.
QueuePairInit common_init(const ibv_qp_init_attr& init) {
  check_type(init.qp_type);
  QueuePairInit made;
  made.send_cq = cq_of(init.send_cq).queue();
  made.recv_cq = cq_of(init.recv_cq).queue();
  // The library's queues have one place at least.
  made.capacity = {.max_send_wr = std::max(init.cap.max_send_wr, uint32_t{1}),
                   .max_recv_wr = std::max(init.cap.max_recv_wr, uint32_t{1}),
                   .max_send_sge = std::max(init.cap.max_send_sge, uint32_t{1}),
                   .max_recv_sge = std::max(init.cap.max_recv_sge, uint32_t{1}),
                   .max_inline_data = granted_capacity(init.cap).max_inline_data};
  made.signal_all = init.sq_sig_all != 0;
  if (init.srq != nullptr) made.srq = srq_of(init.srq).queue();
  return made;
}

}  // namespace

uint32_t granted_requests(uint32_t wanted) {
  constexpr uint32_t kLargest = uint32_t{1} << 31;
  return wanted == 0 || wanted > kLargest ? wanted : std::bit_ceil(wanted);
}

ibv_qp_cap granted_capacity(const ibv_qp_cap& wanted) {
  constexpr uint32_t kLeastInline = 64;  // rdma_xclient sends 16 bytes so
  ibv_qp_cap granted = wanted;
  granted.max_send_wr = granted_requests(wanted.max_send_wr);
  granted.max_recv_wr = granted_requests(wanted.max_recv_wr);
  granted.max_inline_data = std::max(wanted.max_inline_data, kLeastInline);
  return granted;
}

QueuePairInit queue_pair_init(const ibv_qp_init_attr& init) {
  QueuePairInit made = common_init(init);
  made.type = QpType::rc;
  made.stream = stream_options();
  return made;
}

QueuePairInit ud_queue_pair_init(const ibv_qp_init_attr& init, const std::string& group_interface) {
  QueuePairInit made = common_init(init);
  made.type = settings().reliable_datagrams ? QpType::rd : QpType::ud;
  made.datagram.max_rate = settings().datagram_rate;
  made.datagram.route_header = true;
  made.datagram.group.interface = group_interface;
  return made;
}

ibv_qp_state state_of(QpState state, ibv_qp_state step) {
  switch (state) {
    case QpState::reset:
      return IBV_QPS_RESET;
    case QpState::init:
      return step;
    case QpState::rtr:
      return IBV_QPS_RTR;
    case QpState::rts:
      return IBV_QPS_RTS;
    case QpState::sqd:
    case QpState::closing:  // as siw has it
      return IBV_QPS_SQD;
    case QpState::error:
      return IBV_QPS_ERR;
  }
  return IBV_QPS_UNKNOWN;
}

}  // namespace diwarp::compat
