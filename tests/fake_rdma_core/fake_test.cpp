// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "fake_rdma_core/fake_scene.h"

using namespace fake_test;

namespace {

void put(End& end, size_t offset, const std::string& text) {
  std::memcpy(end.memory.data() + offset, text.data(), text.size());
}
std::string get(const End& end, size_t offset, size_t length) {
  return {reinterpret_cast<const char*>(end.memory.data() + offset), length};
}

ibv_send_wr remote(ibv_wr_opcode opcode, const End& target, size_t offset) {
  ibv_send_wr request = End::request_of(opcode, 1);
  request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(target.memory.data() + offset);
  request.wr.rdma.rkey = target.mr->rkey;
  return request;
}

/// As verbs.h queries a port; that is not called, since it refers to the library's own function,
/// too.
int query_port(ibv_context* context, ibv_port_attr& port) {
  return verbs_get_ctx(context)->query_port(context, 1, &port, sizeof port);
}

uint64_t word_at(const End& end, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, end.memory.data() + offset, sizeof word);
  return word;
}

}  // namespace

TEST_CASE("fake rdma-core: the devices are those that the environment names") {
  ::setenv("FAKE_RDMA_CORE_DEVICES",
           "a=127.0.0.1 b=[::1]:down c=127.0.0.3:infiniband:vendor=626d74", 1);
  {
    const Fresh fresh;
    int count = 0;
    ibv_device** const list = api().get_device_list(&count);
    REQUIRE(count == 3);
    CHECK(list[3] == nullptr);
    CHECK(list[0]->node_type == IBV_NODE_RNIC);
    CHECK(list[0]->transport_type == IBV_TRANSPORT_IWARP);
    CHECK(list[2]->node_type == IBV_NODE_CA);
    ibv_context* const other = api().open_device(list[2]);
    ibv_device_attr attributes;
    REQUIRE(api().query_device(other, &attributes) == 0);
    CHECK(attributes.vendor_id == 0x626d74);
    CHECK(api().close_device(other) == 0);
    ibv_context* const down = api().open_device(list[1]);
    REQUIRE(down != nullptr);
    ibv_port_attr port = {};
    REQUIRE(query_port(down, port) == 0);
    CHECK(port.state == IBV_PORT_DOWN);
    CHECK(port.link_layer == IBV_LINK_LAYER_ETHERNET);
    CHECK(api().close_device(down) == 0);
    api().free_device_list(list);
  }
  ::unsetenv("FAKE_RDMA_CORE_DEVICES");
  api().clear();
}

TEST_CASE("fake rdma-core: librdmacm's contexts are devices that are open") {
  const Fresh fresh;
  int count = 0;
  ibv_context** const list = api().get_devices(&count);
  REQUIRE(count == 1);
  CHECK(std::string(list[0]->device->name) == "fake0");
  api().free_devices(list);
}

TEST_CASE("fake rdma-core: the exported query of a port writes the short structure") {
  const Fresh fresh;
  ibv_context* const context = open_device();
  ibv_port_attr port;
  std::memset(&port, 0x5a, sizeof port);
  auto* const as_before = reinterpret_cast<_compat_ibv_port_attr*>(&port);
  REQUIRE(api().query_port_short(context, 1, as_before) == 0);
  CHECK(port.state == IBV_PORT_ACTIVE);
  CHECK(port.port_cap_flags2 == 0x5a5a);
  CHECK(api().close_device(context) == 0);
}

TEST_CASE("fake rdma-core: messages, Writes and Reads go over a connection") {
  Pair pair;
  put(pair.a, 0, "hello");
  REQUIRE(pair.b.post_recv(7, 100, 50) == 0);
  REQUIRE(pair.a.send(8, 0, 5) == 0);
  const ibv_wc received = pair.b.next_good();
  CHECK(received.wr_id == 7);
  CHECK(received.opcode == IBV_WC_RECV);
  CHECK(received.byte_len == 5);
  CHECK(received.qp_num == pair.b.qp->qp_num);
  CHECK(get(pair.b, 100, 5) == "hello");
  CHECK(pair.a.next_good().wr_id == 8);

  REQUIRE(pair.a.post(remote(IBV_WR_RDMA_WRITE, pair.b, 1000), 0, 5) == 0);
  CHECK(pair.a.next_good().opcode == IBV_WC_RDMA_WRITE);
  REQUIRE(pair.a.post(remote(IBV_WR_RDMA_READ, pair.b, 1000), 2000, 5) == 0);
  CHECK(pair.a.next_good().opcode == IBV_WC_RDMA_READ);
  CHECK(get(pair.a, 2000, 5) == "hello");
}

TEST_CASE("fake rdma-core: atomics answer with the value before") {
  Pair pair;
  const uint64_t five = 5;
  std::memcpy(pair.b.memory.data() + 64, &five, sizeof five);
  ibv_send_wr request = End::request_of(IBV_WR_ATOMIC_FETCH_AND_ADD, 1);
  request.wr.atomic.remote_addr = reinterpret_cast<uint64_t>(pair.b.memory.data() + 64);
  request.wr.atomic.rkey = pair.b.mr->rkey;
  request.wr.atomic.compare_add = 3;
  REQUIRE(pair.a.post(request, 128, 8) == 0);
  CHECK(pair.a.next_good().opcode == IBV_WC_FETCH_ADD);
  CHECK(word_at(pair.a, 128) == 5);
  CHECK(word_at(pair.b, 64) == 8);

  request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  request.wr.atomic.compare_add = 8;
  request.wr.atomic.swap = 100;
  REQUIRE(pair.a.post(request, 128, 8) == 0);
  CHECK(pair.a.next_good().opcode == IBV_WC_COMP_SWAP);
  CHECK(word_at(pair.b, 64) == 100);

  api().deny("atomics", 1);
  CHECK(pair.a.post(request, 128, 8) == EINVAL);
  ibv_device_attr attributes;
  REQUIRE(api().query_device(pair.a.context, &attributes) == 0);
  CHECK(attributes.atomic_cap == IBV_ATOMIC_NONE);
}

TEST_CASE("fake rdma-core: capabilities are denied as the environment has it") {
  ::setenv("FAKE_RDMA_CORE_DENY", "atomics srq", 1);
  {
    const Fresh fresh;
    ibv_context* const context = open_device();
    ibv_device_attr attributes;
    REQUIRE(api().query_device(context, &attributes) == 0);
    CHECK(attributes.atomic_cap == IBV_ATOMIC_NONE);
    CHECK(attributes.max_srq == 0);
    CHECK(attributes.max_mw != 0);
    CHECK(api().close_device(context) == 0);
  }
  ::unsetenv("FAKE_RDMA_CORE_DENY");
  api().clear();
}

TEST_CASE("fake rdma-core: immediate data come without a message") {
  Pair pair;
  REQUIRE(pair.b.post_recv(7, 0, 8) == 0);
  ibv_send_wr request = End::request_of(IBV_WR_SEND_WITH_IMM, 1);
  request.imm_data = htonl(0x01020304);
  REQUIRE(pair.a.post(request) == 0);
  const ibv_wc received = pair.b.next_good();
  CHECK(received.wc_flags == IBV_WC_WITH_IMM);
  CHECK(ntohl(received.imm_data) == 0x01020304);
  CHECK(pair.a.post(request, 0, 4) == EINVAL);
}

TEST_CASE("fake rdma-core: a window is bound, used, and invalidated by the peer") {
  Pair pair;
  ibv_mw* const window = ibv_alloc_mw(pair.b.pd, IBV_MW_TYPE_2);
  REQUIRE(window != nullptr);
  ibv_send_wr bind = End::request_of(IBV_WR_BIND_MW, 1);
  bind.bind_mw.mw = window;
  bind.bind_mw.rkey = ibv_inc_rkey(window->rkey);
  bind.bind_mw.bind_info = {.mr = pair.b.mr,
                            .addr = reinterpret_cast<uint64_t>(pair.b.memory.data()),
                            .length = 64,
                            .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  REQUIRE(pair.b.post(bind) == 0);
  CHECK(pair.b.next_good().opcode == IBV_WC_BIND_MW);
  ibv_send_wr write = remote(IBV_WR_RDMA_WRITE, pair.b, 0);
  write.wr.rdma.rkey = bind.bind_mw.rkey;
  put(pair.a, 0, "window");
  REQUIRE(pair.a.post(write, 0, 6) == 0);
  CHECK(pair.a.next_good().opcode == IBV_WC_RDMA_WRITE);

  REQUIRE(pair.b.post_recv(2, 100, 10) == 0);
  ibv_send_wr send = End::request_of(IBV_WR_SEND_WITH_INV, 3);
  send.invalidate_rkey = bind.bind_mw.rkey;
  REQUIRE(pair.a.post(send, 0, 6) == 0);
  const ibv_wc received = pair.b.next_good();
  CHECK(received.wc_flags == IBV_WC_WITH_INV);
  CHECK(received.invalidated_rkey == bind.bind_mw.rkey);
  CHECK(get(pair.b, 0, 6) == "window");
  CHECK(ibv_dealloc_mw(window) == 0);
}

TEST_CASE("fake rdma-core: a region is invalidated by the peer") {
  Pair pair;
  ibv_mr* const region = (api().reg_mr)(pair.b.pd, pair.b.memory.data(), 64, kAllAccess);
  REQUIRE(pair.b.post_recv(1, 100, 10) == 0);
  ibv_send_wr send = End::request_of(IBV_WR_SEND_WITH_INV, 2);
  send.invalidate_rkey = region->rkey;
  REQUIRE(pair.a.post(send, 0, 6) == 0);
  CHECK(pair.b.next_good().invalidated_rkey == region->rkey);
  CHECK(api().dereg_mr(region) == 0);
}

TEST_CASE("fake rdma-core: addresses count from the iova, and two keys may differ") {
  Pair pair;
  api().deny("two-keys", 1);
  ibv_mr* const region =
      api().reg_mr_iova2(pair.a.pd, pair.a.memory.data(), 4096, 0x10000, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region != nullptr);
  CHECK(region->lkey != region->rkey);
  put(pair.a, 16, "moved");
  REQUIRE(pair.b.post_recv(1, 0, 10) == 0);
  ibv_sge sge = {0x10010, 5, region->lkey};
  ibv_send_wr request = End::request_of(IBV_WR_SEND, 2);
  request.sg_list = &sge;
  request.num_sge = 1;
  REQUIRE(pair.a.post(request) == 0);
  pair.b.next_good();
  CHECK(get(pair.b, 0, 5) == "moved");
  CHECK(api().dereg_mr(region) == 0);
}

TEST_CASE("fake rdma-core: memory for Reads needs the right to be written by peers") {
  Pair pair({.access = IBV_ACCESS_LOCAL_WRITE}, {});
  REQUIRE(pair.a.post(remote(IBV_WR_RDMA_READ, pair.b, 0), 0, 8) == 0);
  CHECK(pair.a.next().status == IBV_WC_LOC_PROT_ERR);
}

TEST_CASE("fake rdma-core: unsignaled requests complete silently and fill the queue") {
  Pair pair({.depth = 4}, {.depth = 8});
  for (uint64_t i = 0; i < 8; ++i) REQUIRE(pair.b.post_recv(i, 0, 8) == 0);
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(pair.a.send(i, 0, 8, 0) == 0);
  for (uint64_t i = 0; i < 4; ++i) CHECK(pair.b.next_good().wr_id == i);
  ibv_wc wc;
  CHECK(ibv_poll_cq(pair.a.cq, 1, &wc) == 0);
  CHECK(pair.a.send(4, 0, 8) == ENOMEM);
}

TEST_CASE("fake rdma-core: the end of a connection flushes") {
  Pair pair;
  REQUIRE(pair.b.post_recv(1, 0, 8) == 0);
  REQUIRE(pair.b.post_recv(2, 0, 8) == 0);
  REQUIRE(api().disconnect(pair.id_a) == 0);
  pair.channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  pair.listener.channel.expect(RDMA_CM_EVENT_DISCONNECTED);
  for (const uint64_t wr_id : {1u, 2u}) {
    const ibv_wc wc = pair.b.next();
    CHECK(wc.wr_id == wr_id);
    CHECK(wc.status == IBV_WC_WR_FLUSH_ERR);
  }
  CHECK(pair.b.state() == IBV_QPS_ERR);
  CHECK(pair.b.post_recv(3, 0, 8) == EINVAL);
  CHECK(pair.a.send(4, 0, 8) == EINVAL);
  pair.b.modify(IBV_QPS_RESET);
  CHECK(pair.b.state() == IBV_QPS_RESET);
}

TEST_CASE("fake rdma-core: a Send that finds no receive ends the connection") {
  Pair pair;
  REQUIRE(pair.a.send(1, 0, 8) == 0);
  ibv_async_event event = pair.b.next_async_event();
  CHECK(event.event_type == IBV_EVENT_QP_FATAL);
  CHECK(event.element.qp == pair.b.qp);
  api().ack_async_event(&event);
  api().ack_cm_event(pair.listener.channel.fetch(RDMA_CM_EVENT_DISCONNECTED));
}

TEST_CASE("fake rdma-core: a completion queue that is full loses completions and dies") {
  Pair pair({}, {.entries = 2});
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(pair.b.post_recv(i, 0, 8) == 0);
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(pair.a.send(i, 0, 8) == 0);
  ibv_async_event event = pair.b.next_async_event();
  CHECK(event.event_type == IBV_EVENT_CQ_ERR);
  CHECK(event.element.cq == pair.b.cq);
  api().ack_async_event(&event);
  CHECK(pair.b.next_good().wr_id == 0);
  CHECK(pair.b.next_good().wr_id == 1);
  ibv_wc wc;
  CHECK(ibv_poll_cq(pair.b.cq, 1, &wc) == 0);
}

TEST_CASE("fake rdma-core: an armed completion queue tells its channel") {
  Pair pair;
  REQUIRE(::fcntl(pair.b.comp_channel->fd, F_SETFL, O_NONBLOCK) == 0);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  const auto get = [&] { return api().get_cq_event(pair.b.comp_channel, &cq, &context); };
  CHECK(refusal(get) == EAGAIN);
  REQUIRE(ibv_req_notify_cq(pair.b.cq, 1) == 0);
  REQUIRE(pair.b.post_recv(1, 0, 8) == 0);
  REQUIRE(pair.b.post_recv(2, 0, 8) == 0);
  REQUIRE(pair.a.send(1, 0, 8) == 0);
  pair.b.next_good();
  CHECK_FALSE(readable(pair.b.comp_channel->fd, 20));  // it was not solicited
  REQUIRE(pair.a.send(1, 0, 8, IBV_SEND_SIGNALED | IBV_SEND_SOLICITED) == 0);
  REQUIRE(readable(pair.b.comp_channel->fd));
  REQUIRE(get() == 0);
  CHECK(cq == pair.b.cq);
  CHECK(context == &pair.b);
  api().ack_cq_events(cq, 1);
}

TEST_CASE("fake rdma-core: a shared receive queue serves, and tells its limit") {
  Pair pair({}, {.with_srq = true});
  REQUIRE(pair.b.post_recv(1, 0, 8) == 0);
  REQUIRE(pair.b.post_recv(2, 0, 8) == 0);
  ibv_srq_attr limit = {.max_wr = 0, .max_sge = 0, .srq_limit = 2};
  REQUIRE(api().modify_srq(pair.b.srq, &limit, IBV_SRQ_LIMIT) == 0);
  REQUIRE(pair.a.send(1, 0, 8) == 0);
  CHECK(pair.b.next_good().wr_id == 1);
  ibv_async_event event = pair.b.next_async_event();
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  CHECK(event.element.srq == pair.b.srq);
  api().ack_async_event(&event);
}

TEST_CASE("fake rdma-core: a limit is looked at when a shared receive is taken") {
  Pair pair({}, {.with_srq = true});
  ibv_srq_attr limit = {.max_wr = 0, .max_sge = 0, .srq_limit = 2};
  REQUIRE(api().modify_srq(pair.b.srq, &limit, IBV_SRQ_LIMIT) == 0);
  CHECK_FALSE(readable(pair.b.context->async_fd, 20));  // there are fewer, and nothing comes
  ibv_srq_attr present;
  REQUIRE(api().query_srq(pair.b.srq, &present) == 0);
  CHECK(present.srq_limit == 2);
  REQUIRE(pair.b.post_recv(1, 0, 8) == 0);
  REQUIRE(pair.a.send(1, 0, 8) == 0);
  CHECK(pair.b.next_good().wr_id == 1);
  ibv_async_event event = pair.b.next_async_event();
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  api().ack_async_event(&event);
}

TEST_CASE("fake rdma-core: a request may be rejected, or find nobody") {
  const Fresh fresh;
  Channel channel;
  End end;
  rdma_cm_id* id = channel.id();
  __be16 port = 0;
  {
    Listener listener;
    port = listener.port();
    resolve(channel, id, port);
    rdma_conn_param asks = parameters_for(end);
    REQUIRE(api().connect(id, &asks) == 0);
    rdma_cm_event* const request = listener.channel.fetch(RDMA_CM_EVENT_CONNECT_REQUEST);
    rdma_cm_id* const requested = request->id;
    api().ack_cm_event(request);
    REQUIRE(api().reject(requested, "no", 2) == 0);
    CHECK(api().destroy_id(requested) == 0);
    rdma_cm_event* const rejected = channel.fetch(RDMA_CM_EVENT_REJECTED);
    CHECK(private_data_of(*rejected) == "no");
    CHECK(rejected->status == -ECONNRESET);
    api().ack_cm_event(rejected);
  }
  CHECK(api().destroy_id(id) == 0);
  id = channel.id();
  resolve(channel, id, port);
  rdma_conn_param asks = parameters_for(end);
  REQUIRE(api().connect(id, &asks) == 0);
  channel.expect(RDMA_CM_EVENT_REJECTED, -ECONNREFUSED);
  CHECK(api().destroy_id(id) == 0);
}

TEST_CASE("fake rdma-core: chosen calls fail, and calls are counted") {
  Pair pair;
  api().clear();
  api().fail("ibv_alloc_pd", 1, ENOSPC);
  ibv_pd* const pd = api().alloc_pd(pair.a.context);
  REQUIRE(pd != nullptr);
  CHECK(refusal([&] { return api().alloc_pd(pair.a.context); }) == ENOSPC);
  CHECK(api().calls("ibv_alloc_pd") == 2);
  api().fail("ibv_dealloc_pd", 0, EBUSY);
  CHECK(api().dealloc_pd(pd) == EBUSY);
  CHECK(api().dealloc_pd(pd) == 0);
  api().fail("post_send", 0, EIO);
  CHECK(pair.a.send(1, 0, 8) == EIO);
  api().fail("poll_cq", 0, EIO);
  ibv_wc wc;
  CHECK(ibv_poll_cq(pair.a.cq, 1, &wc) == -1);
  api().fail("rdma_listen", 0, EADDRINUSE);
  CHECK(refusal([&] { return api().listen(pair.listener.id, 1); }) == EADDRINUSE);
}

TEST_CASE("fake rdma-core: a port goes down and comes back") {
  const Fresh fresh;
  End end;
  ibv_port_attr port = {};
  for (const auto& [type, state] : {std::pair{IBV_EVENT_PORT_ERR, IBV_PORT_DOWN},
                                    std::pair{IBV_EVENT_PORT_ACTIVE, IBV_PORT_ACTIVE}}) {
    api().raise("fake0", type);
    ibv_async_event event = end.next_async_event();
    CHECK(event.event_type == type);
    api().ack_async_event(&event);
    REQUIRE(query_port(end.context, port) == 0);
    CHECK(port.state == state);
  }
}

TEST_CASE("fake rdma-core: a device goes away") {
  Pair pair;
  REQUIRE(pair.b.post_recv(1, 0, 8) == 0);
  api().remove("fake0");
  pair.channel.expect(RDMA_CM_EVENT_DEVICE_REMOVAL);
  for (int i = 0; i < 2; ++i) pair.listener.channel.expect(RDMA_CM_EVENT_DEVICE_REMOVAL);
  CHECK_FALSE(readable(pair.channel.channel->fd, 20));
  ibv_async_event event = pair.b.next_async_event();
  CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
  api().ack_async_event(&event);
  CHECK(pair.b.next().status == IBV_WC_WR_FLUSH_ERR);
  CHECK(refusal([&] { return api().alloc_pd(pair.a.context); }) == EIO);
  int count = 1;
  api().free_device_list(api().get_device_list(&count));
  CHECK(count == 0);
}
