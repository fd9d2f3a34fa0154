// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdlib>
#include <future>

#include "fake_rdma_core/fake_scene.h"

/// Objects of the fake: what they are refused for, and what they wait for when they go.

using namespace fake_test;
using namespace std::chrono_literals;

TEST_CASE("fake rdma-core: regions are refused as adapters refuse them") {
  const Fresh fresh;
  End end;
  const auto reg = [&](size_t length, int access) {
    return refusal([&] { return (api().reg_mr)(end.pd, end.memory.data(), length, access); });
  };
  CHECK(reg(8, IBV_ACCESS_REMOTE_WRITE) == EINVAL);
  CHECK(reg(8, IBV_ACCESS_REMOTE_ATOMIC) == EINVAL);
  CHECK(reg(0, IBV_ACCESS_LOCAL_WRITE) == EINVAL);
  CHECK(reg(8, IBV_ACCESS_ON_DEMAND) == EINVAL);
}

TEST_CASE("fake rdma-core: the next regions have the keys that were chosen for them, if unused") {
  const Fresh fresh;
  End end;
  const auto reg = [&] {
    return (api().reg_mr)(end.pd, end.memory.data(), 8, IBV_ACCESS_LOCAL_WRITE);
  };
  const uint32_t key = end.mr->rkey ^ 0x00100000;
  for (const uint32_t chosen : {key, end.mr->rkey}) api().choose_key(chosen);
  ibv_mr* const first = reg();
  REQUIRE(first != nullptr);
  CHECK(first->rkey == key);
  CHECK(refusal(reg) == EINVAL);
  ibv_mr* const third = reg();
  REQUIRE(third != nullptr);
  for (ibv_mr* const mr : {first, third}) CHECK(api().dereg_mr(mr) == 0);
}

TEST_CASE("fake rdma-core: an object that others rest on is busy") {
  const Fresh fresh;
  End end;
  CHECK(api().dealloc_pd(end.pd) == EBUSY);
  CHECK(api().destroy_cq(end.cq) == EBUSY);
  CHECK(api().destroy_comp_channel(end.comp_channel) == EBUSY);
}

TEST_CASE("fake rdma-core: a queue pair takes its states from the application and the connection") {
  const Fresh fresh;
  End end;
  ibv_qp_attr attributes = {};
  attributes.qp_state = IBV_QPS_RTR;
  CHECK(api().modify_qp(end.qp, &attributes, IBV_QP_STATE) == EINVAL);
  CHECK(end.send(1, 0, 8) == EINVAL);
  REQUIRE(end.post_recv(1, 0, 8) == 0);
  end.modify(IBV_QPS_ERR);
  CHECK(end.next().status == IBV_WC_WR_FLUSH_ERR);
  end.modify(IBV_QPS_RESET);
  CHECK(end.post_recv(2, 0, 8) == EINVAL);
}

TEST_CASE("fake rdma-core: a reset drops what was posted and what was not polled") {
  const Fresh fresh;
  End end({.depth = 2});
  REQUIRE(end.post_recv(1, 0, 8) == 0);
  end.modify(IBV_QPS_ERR);
  end.modify(IBV_QPS_RESET);
  end.modify(IBV_QPS_INIT);
  for (uint64_t i = 2; i < 4; ++i) REQUIRE(end.post_recv(i, 0, 8) == 0);
  CHECK(end.post_recv(4, 0, 8) == ENOMEM);
  ibv_wc wc;
  CHECK(ibv_poll_cq(end.cq, 1, &wc) == 0);
}

TEST_CASE("fake rdma-core: a completion queue changes its size") {
  Pair pair({}, {.entries = 1});
  REQUIRE(api().resize_cq(pair.b.cq, 8) == 0);
  CHECK(pair.b.cq->cqe == 8);
  for (uint64_t i = 0; i < 2; ++i) REQUIRE(pair.b.post_recv(i, 0, 8) == 0);
  for (uint64_t i = 0; i < 2; ++i) REQUIRE(pair.a.send(i, 0, 8) == 0);
  for (uint64_t i = 0; i < 2; ++i) CHECK(pair.b.next_good().wr_id == i);
  api().deny("resize", 1);
  CHECK(api().resize_cq(pair.b.cq, 16) == ENOSYS);
}

TEST_CASE("fake rdma-core: a queue pair waits until its events are acknowledged") {
  const Fresh fresh;
  End end;
  api().raise("fake0", IBV_EVENT_QP_FATAL);
  ibv_async_event event = end.next_async_event();
  CHECK(event.element.qp == end.qp);
  const auto destroy = [qp = end.qp] { return api().destroy_qp(qp); };
  end.qp = nullptr;
  std::future<int> ending = std::async(std::launch::async, destroy);
  CHECK(ending.wait_for(20ms) == std::future_status::timeout);
  api().ack_async_event(&event);
  CHECK(ending.get() == 0);
}

TEST_CASE("fake rdma-core: events that nobody fetched go with their object") {
  const Fresh fresh;
  ibv_context* const context = open_device();
  {
    End end;
    api().raise("fake0", IBV_EVENT_CQ_ERR);
    CHECK(readable(end.context->async_fd, 0));
  }
  CHECK_FALSE(readable(context->async_fd, 0));
  CHECK(api().close_device(context) == 0);
}

TEST_CASE("fake rdma-core: a queue pair in error takes no more of its shared receives") {
  const Fresh fresh;
  End end({.with_srq = true});
  end.modify(IBV_QPS_ERR);
  ibv_async_event event = end.next_async_event();
  CHECK(event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED);
  CHECK(event.element.qp == end.qp);
  api().ack_async_event(&event);
}

TEST_CASE("fake rdma-core: old kernels need ibv_fork_init before the first region") {
  const Fresh fresh;
  CHECK(api().is_fork_initialized() == IBV_FORK_UNNEEDED);
  api().deny("copy-on-fork", 1);
  CHECK(api().is_fork_initialized() == IBV_FORK_DISABLED);
  {
    const End end;
    CHECK(api().fork_init() == EINVAL);
  }
  api().clear();
  api().deny("copy-on-fork", 1);
  CHECK(api().fork_init() == 0);
  CHECK(api().is_fork_initialized() == IBV_FORK_ENABLED);
  api().deny("fork", 1);
  CHECK(api().fork_init() == ENOSYS);
}

TEST_CASE("fake rdma-core: what is denied is refused, and not listed") {
  const Fresh fresh;
  End end;
  api().deny("srq", 1);
  api().deny("memory-windows", 1);
  ibv_srq_init_attr init = {.srq_context = nullptr, .attr = {1, 1, 0}};
  CHECK(refusal([&] { return api().create_srq(end.pd, &init); }) == EOPNOTSUPP);
  CHECK(refusal([&] { return ibv_alloc_mw(end.pd, IBV_MW_TYPE_2); }) == EOPNOTSUPP);
  ibv_device_attr attributes;
  REQUIRE(api().query_device(end.context, &attributes) == 0);
  CHECK(attributes.max_srq == 0);
  CHECK(attributes.max_mw == 0);
}

TEST_CASE("fake rdma-core: a device may know less of invalidations, iovas and errors") {
  Pair pair;
  for (const char* name : {"iova", "local-invalidate", "told-invalidations", "local-errors"})
    api().deny(name, 1);
  ibv_send_wr invalidate = End::request_of(IBV_WR_LOCAL_INV, 1);
  invalidate.invalidate_rkey = pair.a.mr->rkey;
  CHECK(pair.a.post(invalidate) == EINVAL);
  ibv_mr* const region =
      api().reg_mr_iova2(pair.a.pd, pair.a.memory.data(), 64, 0x10000, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region != nullptr);
  ibv_sge sge = {reinterpret_cast<uint64_t>(pair.a.memory.data()), 8, region->lkey};
  ibv_send_wr send = End::request_of(IBV_WR_SEND, 2);
  send.sg_list = &sge;
  send.num_sge = 1;
  REQUIRE(pair.b.post_recv(3, 0, 8) == 0);
  REQUIRE(pair.a.post(send) == 0);
  CHECK(pair.a.next_good().wr_id == 2);
  sge.addr = 0x10000;
  REQUIRE(pair.a.post(send) == 0);
  CHECK(pair.a.next().status == IBV_WC_LOC_QP_OP_ERR);
  CHECK(api().dereg_mr(region) == 0);
}
