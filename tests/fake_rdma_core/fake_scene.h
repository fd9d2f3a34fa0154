// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "fake_rdma_core/fake_library.h"
#include "support/catch.h"

/// Two ends of a connection through the fake, in one process.
namespace fake_test {

inline const Libraries& api() {
  static const Libraries only(FAKE_RDMA_CORE_FOLDER);
  return only;
}

/// The fake as it is at first; no object may be left at the end.
struct Fresh {
  Fresh() { api().clear(); }
  ~Fresh() {
    CHECK(api().objects() == 0);
    api().clear();
  }
};

inline bool readable(int descriptor, int milliseconds = 10000) {
  pollfd watched = {.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, milliseconds) == 1;
}

/// The errno of a call that must answer with -1 or null.
template <class Call>
int refusal(Call&& call) {
  const auto answer = call();
  const int error = errno;  // Catch2's macros may change it
  if constexpr (std::is_pointer_v<std::remove_const_t<decltype(answer)>>)
    CHECK(answer == nullptr);
  else
    CHECK(answer == -1);
  return error;
}

inline ibv_context* open_device(const std::string& name = "fake0") {
  ibv_context* context = nullptr;
  ibv_device** const list = api().get_device_list(nullptr);
  REQUIRE(list != nullptr);
  for (ibv_device** device = list; *device != nullptr; ++device)
    if (name == api().get_device_name(*device)) context = api().open_device(*device);
  api().free_device_list(list);
  return context;
}

constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND;

struct EndOptions {
  int entries = 64;
  uint32_t depth = 16;
  bool with_srq = false;
  int access = kAllAccess;
};

/// A queue pair with all that belongs to it.
class End {
 public:
  explicit End(const EndOptions& options = {}) : context(open_device()) {
    REQUIRE(context != nullptr);
    pd = api().alloc_pd(context);
    mr = (api().reg_mr)(pd, memory.data(), memory.size(), options.access);
    REQUIRE(mr != nullptr);
    comp_channel = api().create_comp_channel(context);
    cq = api().create_cq(context, options.entries, this, comp_channel, 0);
    REQUIRE(cq != nullptr);
    if (options.with_srq) {
      ibv_srq_init_attr init = {.srq_context = this, .attr = {options.depth, 1, 0}};
      srq = api().create_srq(pd, &init);
    }
    ibv_qp_init_attr init = {};
    init.send_cq = init.recv_cq = cq;
    init.srq = srq;
    init.cap = {options.depth, options.depth, 2, 2, 64};
    init.qp_type = IBV_QPT_RC;
    qp = api().create_qp(pd, &init);
    REQUIRE(qp != nullptr);
    modify(IBV_QPS_INIT);
  }
  ~End() {
    if (qp != nullptr) CHECK(api().destroy_qp(qp) == 0);
    if (srq != nullptr) CHECK(api().destroy_srq(srq) == 0);
    CHECK(api().destroy_cq(cq) == 0);
    CHECK(api().destroy_comp_channel(comp_channel) == 0);
    CHECK(api().dereg_mr(mr) == 0);
    CHECK(api().dealloc_pd(pd) == 0);
    CHECK(api().close_device(context) == 0);
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  void modify(ibv_qp_state state) {
    ibv_qp_attr attributes = {};
    attributes.qp_state = state;
    REQUIRE(api().modify_qp(qp, &attributes, IBV_QP_STATE) == 0);
  }
  ibv_qp_state state() {
    ibv_qp_attr attributes;
    ibv_qp_init_attr init;
    REQUIRE(api().query_qp(qp, &attributes, IBV_QP_STATE, &init) == 0);
    return attributes.qp_state;
  }

  ibv_sge sge(size_t offset, uint32_t length) const {
    return {reinterpret_cast<uint64_t>(memory.data() + offset), length, mr->lkey};
  }
  int post_recv(uint64_t wr_id, size_t offset, uint32_t length) {
    ibv_sge into = sge(offset, length);
    ibv_recv_wr request = {.wr_id = wr_id, .next = nullptr, .sg_list = &into, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    const int error =
        srq == nullptr ? ibv_post_recv(qp, &request, &bad) : ibv_post_srq_recv(srq, &request, &bad);
    CHECK((bad == &request) == (error != 0));
    return error;
  }
  int post(ibv_send_wr request, size_t offset, uint32_t length) {
    ibv_sge from = sge(offset, length);
    request.sg_list = &from;
    request.num_sge = 1;
    return post(request);
  }
  int post(ibv_send_wr request) {
    ibv_send_wr* bad = nullptr;
    const int error = ibv_post_send(qp, &request, &bad);
    CHECK((bad == &request) == (error != 0));
    return error;
  }
  int send(uint64_t wr_id, size_t offset, uint32_t length, unsigned flags = IBV_SEND_SIGNALED) {
    return post(request_of(IBV_WR_SEND, wr_id, flags), offset, length);
  }
  static ibv_send_wr request_of(ibv_wr_opcode opcode, uint64_t wr_id,
                                unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr request = {};
    request.wr_id = wr_id;
    request.opcode = opcode;
    request.send_flags = flags;
    return request;
  }

  /// The next completion, which must come.
  ibv_wc next() {
    ibv_wc wc = {};
    for (int tries = 0; tries < 10000; ++tries) {
      const int count = ibv_poll_cq(cq, 1, &wc);
      REQUIRE(count >= 0);
      if (count == 1) return wc;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    FAIL("no completion came");
    return wc;
  }
  ibv_wc next_good() {
    const ibv_wc wc = next();
    INFO("wr_id " << wc.wr_id);
    REQUIRE(std::string(api().wc_status_str(wc.status)) == "success");
    return wc;
  }
  ibv_async_event next_async_event() {
    REQUIRE(readable(context->async_fd));
    ibv_async_event event = {};
    REQUIRE(api().get_async_event(context, &event) == 0);
    return event;
  }

  alignas(8) std::array<std::byte, 8192> memory = {};
  ibv_context* context;
  ibv_pd* pd;
  ibv_mr* mr;
  ibv_comp_channel* comp_channel;
  ibv_cq* cq;
  ibv_srq* srq = nullptr;
  ibv_qp* qp;
};

/// A channel of rdma_cm, and the waits for its events.
class Channel {
 public:
  Channel() : channel(api().create_event_channel()) { REQUIRE(channel != nullptr); }
  ~Channel() { api().destroy_event_channel(channel); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  rdma_cm_id* id(void* context = nullptr) {
    rdma_cm_id* made = nullptr;
    REQUIRE(api().create_id(channel, &made, context, RDMA_PS_TCP) == 0);
    return made;
  }
  /// The next event, which must be of this type; to be acknowledged.
  rdma_cm_event* fetch(rdma_cm_event_type type) {
    INFO("waiting for " << api().event_str(type));
    REQUIRE(readable(channel->fd));
    rdma_cm_event* event = nullptr;
    REQUIRE(api().get_cm_event(channel, &event) == 0);
    REQUIRE(std::string(api().event_str(event->event)) == api().event_str(type));
    return event;
  }
  /// The same, acknowledged.
  void expect(rdma_cm_event_type type, int status = 0) {
    rdma_cm_event* const event = fetch(type);
    CHECK(event->status == status);
    api().ack_cm_event(event);
  }

  rdma_event_channel* channel;
};

inline sockaddr_in loopback(uint16_t port_in_network_order = 0) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = port_in_network_order;
  return address;
}

inline rdma_conn_param parameters_for(const End& end, const char* private_data = "") {
  rdma_conn_param parameters = {};
  parameters.private_data = private_data;
  parameters.private_data_len = static_cast<uint8_t>(std::strlen(private_data));
  parameters.initiator_depth = parameters.responder_resources = 8;
  parameters.qp_num = end.qp->qp_num;
  return parameters;
}

inline std::string private_data_of(const rdma_cm_event& event) {
  return {static_cast<const char*>(event.param.conn.private_data),
          event.param.conn.private_data_len};
}

/// An id that listens on a free port of the loopback address.
class Listener {
 public:
  Listener() : id(channel.id(this)) {
    sockaddr_in local = loopback();
    REQUIRE(api().bind_addr(id, reinterpret_cast<sockaddr*>(&local)) == 0);
    REQUIRE(api().listen(id, 5) == 0);
  }
  ~Listener() { CHECK(api().destroy_id(id) == 0); }

  __be16 port() const { return api().get_src_port(id); }

  Channel channel;
  rdma_cm_id* id;
};

/// Brings an id so far that it can connect to the port.
inline void resolve(Channel& channel, rdma_cm_id* id, __be16 port) {
  sockaddr_in peer = loopback(port);
  REQUIRE(api().resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&peer), 1000) == 0);
  channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  CHECK(id->verbs != nullptr);
  REQUIRE(api().resolve_route(id, 1000) == 0);
  channel.expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/// Two ends, connected. `a` is the initiator.
struct Pair {
  explicit Pair(const EndOptions& of_a = {}, const EndOptions& of_b = {}) : a(of_a), b(of_b) {
    id_a = channel.id();
    resolve(channel, id_a, listener.port());
    rdma_conn_param asks = parameters_for(a, "asks");
    REQUIRE(api().connect(id_a, &asks) == 0);
    rdma_cm_event* const request = listener.channel.fetch(RDMA_CM_EVENT_CONNECT_REQUEST);
    CHECK(private_data_of(*request) == "asks");
    CHECK(request->listen_id == listener.id);
    CHECK(request->param.conn.initiator_depth == 8);
    id_b = request->id;
    CHECK(id_b->context == &listener);
    api().ack_cm_event(request);
    rdma_conn_param answers = parameters_for(b, "answers");
    REQUIRE(api().accept(id_b, &answers) == 0);
    rdma_cm_event* const established = channel.fetch(RDMA_CM_EVENT_ESTABLISHED);
    CHECK(private_data_of(*established) == "answers");
    api().ack_cm_event(established);
    listener.channel.expect(RDMA_CM_EVENT_ESTABLISHED);
  }
  ~Pair() {
    CHECK(api().destroy_id(id_a) == 0);
    CHECK(api().destroy_id(id_b) == 0);
  }

  Fresh fresh;
  Listener listener;
  Channel channel;
  End a;
  End b;
  rdma_cm_id* id_a;
  rdma_cm_id* id_b;
};

}  // namespace fake_test
