// SPDX-License-Identifier: Apache-2.0
// A program for libibverbs as others write them: two RC queue pairs of a device are connected by
// GID and number, one Writes where it may not, and is told by its fatal event. What was not fetched
// by the time that the queue pairs are destroyed does not come any more. It prints what it got;
// status 0.
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kPatience = 60'000;  // milliseconds
constexpr int kRights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

void need(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "fatal_event: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

ibv_context* open_device(const char* name) {
  ibv_device** const list = ibv_get_device_list(nullptr);
  need(list != nullptr, "no list of devices");
  ibv_context* opened = nullptr;
  for (ibv_device** one = list; *one != nullptr && opened == nullptr; ++one)
    if (std::strcmp(ibv_get_device_name(*one), name) == 0) opened = ibv_open_device(*one);
  ibv_free_device_list(list);
  need(opened != nullptr, "no such device");
  return opened;
}

ibv_qp* make_queue_pair(ibv_pd* domain, ibv_cq* completions) {
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = completions;
  init.cap.max_send_wr = init.cap.max_recv_wr = 4;
  init.cap.max_send_sge = init.cap.max_recv_sge = 1;
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const made = ibv_create_qp(domain, &init);
  need(made != nullptr, "no queue pair");
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_INIT;
  attributes.port_num = 1;
  attributes.qp_access_flags = kRights;
  need(ibv_modify_qp(made, &attributes,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "it is not in init");
  return made;
}

void connect(ibv_qp* own, const ibv_qp* peer, const ibv_gid& gid) {
  ibv_qp_attr attributes{};
  attributes.qp_state = IBV_QPS_RTR;
  attributes.path_mtu = IBV_MTU_1024;
  attributes.dest_qp_num = peer->qp_num;
  attributes.max_dest_rd_atomic = 1;
  attributes.min_rnr_timer = 12;
  attributes.ah_attr.is_global = 1;
  attributes.ah_attr.port_num = 1;
  attributes.ah_attr.grh.dgid = gid;
  attributes.ah_attr.grh.hop_limit = 1;
  need(ibv_modify_qp(own, &attributes,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "it is not ready to receive");
  attributes = {};
  attributes.qp_state = IBV_QPS_RTS;
  attributes.timeout = 14;
  attributes.retry_cnt = attributes.rnr_retry = 7;
  attributes.max_rd_atomic = 1;
  need(ibv_modify_qp(own, &attributes,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "it is not ready to send");
}

/// To where no region is.
void write_wrongly(ibv_qp* qp, const ibv_mr* region) {
  ibv_sge sge{reinterpret_cast<uintptr_t>(region->addr), 8, region->lkey};
  ibv_send_wr request{};
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED;
  request.sg_list = &sge;
  request.num_sge = 1;
  request.wr.rdma.remote_addr = sge.addr;
  request.wr.rdma.rkey = region->rkey ^ 0x5a5a00;
  ibv_send_wr* bad = nullptr;
  need(ibv_post_send(qp, &request, &bad) == 0, "the Write is refused");
}

/// Until the queue pair's own comes: its peer has one, too, and either may be first.
ibv_event_type event_of(ibv_context* context, const ibv_qp* qp) {
  for (;;) {
    pollfd watched{context->async_fd, POLLIN, 0};
    need(::poll(&watched, 1, kPatience) == 1, "no event comes");
    ibv_async_event event{};
    need(ibv_get_async_event(context, &event) == 0, "the event is not handed out");
    const bool own = event.element.qp == qp;
    ibv_ack_async_event(&event);
    if (own) return event.event_type;
  }
}

void need_no_event(ibv_context* context) {
  need(::fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0, "the descriptor stays as it is");
  ibv_async_event event{};
  need(ibv_get_async_event(context, &event) != 0 && errno == EAGAIN,
       "an event of what is destroyed");
}

}  // namespace

int main(int, char** argv) {
  ibv_context* const context = open_device(argv[1]);
  ibv_pd* const domain = ibv_alloc_pd(context);
  ibv_cq* const completions = ibv_create_cq(context, 16, nullptr, nullptr, 0);
  static std::array<char, 64> memory;
  ibv_mr* const region = ibv_reg_mr(domain, memory.data(), memory.size(), kRights);
  need(region != nullptr, "no region");
  ibv_gid gid{};
  need(ibv_query_gid(context, 1, 0, &gid) == 0, "no GID");
  ibv_qp* const writer = make_queue_pair(domain, completions);
  ibv_qp* const target = make_queue_pair(domain, completions);
  connect(writer, target, gid);
  connect(target, writer, gid);
  write_wrongly(writer, region);
  const ibv_event_type told = event_of(context, writer);
  need(told == IBV_EVENT_QP_FATAL, "another event");
  std::printf("%s\n", ibv_event_type_str(told));
  need(ibv_destroy_qp(writer) == 0 && ibv_destroy_qp(target) == 0, "a queue pair stays");
  need_no_event(context);
  need(ibv_dereg_mr(region) == 0 && ibv_destroy_cq(completions) == 0, "a queue or region stays");
  need(ibv_dealloc_pd(domain) == 0 && ibv_close_device(context) == 0, "the device stays open");
}
