// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// The common part of all work requests: SGEs that are written in place, optional immediate data,
/// and posting of several at once.
namespace diwarp::test {

TEST_CASE("an SGE may be written into any request where it is posted") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  const MemoryRegion open(b.pd, std::span(b.memory),
                          Access::local_write | Access::remote_write | Access::remote_read);
  size_t posted = 0;
  REQUIRE_FALSE(b.qp.post_recv({.wr_id = 1, .sges = {b.mr.sge()}}));
  const ReceiveWorkRequest receives[] = {{.wr_id = 2, .sges = {b.mr.sge(0, 10), b.mr.sge(20, 10)}},
                                         {.wr_id = 3, .sges = b.mr.sge()}};
  REQUIRE_FALSE(b.qp.post_recvs(receives, posted));
  REQUIRE(posted == 2);
  a.fill(pattern(40, 1));
  REQUIRE_FALSE(a.qp.post_send({.sges = {a.mr.sge(0, 10)}, .destination = b.address()}));
  const SendWorkRequest sends[] = {
      {.sges = {a.mr.sge(0, 5), a.mr.sge(5, 5)}, .destination = b.address()},
      {.sges = a.mr.sge(0, 10), .destination = b.address(), .immediate = 7}};
  REQUIRE_FALSE(a.qp.post_sends(sends, posted));
  REQUIRE(posted == 2);
  REQUIRE_FALSE(a.qp.post_write_record({.sges = {a.mr.sge(0, 40)},
                                        .destination = b.address(),
                                        .remote = {open.rkey(), open.base()},
                                        .immediate = 8}));
  REQUIRE_FALSE(a.qp.post_read({.sges = {a.mr.sge(100, 40)},
                                .destination = b.address(),
                                .remote = {open.rkey(), open.base()}}));
  world.settle();
  const auto received = drain(b.recv_cq);
  REQUIRE(received.size() == 4);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(received[i].wr_id == i + 1);
    CHECK(received[i].byte_count == 10);
  }
  CHECK_FALSE(received[1].has_immediate);
  CHECK(received[2].has_immediate);
  CHECK(received[2].immediate == 7);
  CHECK(received[3].immediate == 8);
  CHECK(drain(a.send_cq).size() == 5);
  CHECK(same(a.bytes(100, 40), b.bytes(0, 40)));
}

TEST_CASE("receives that are posted together are posted up to the first that cannot be") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device(), {.capacity = {.max_recv_wr = 4, .max_recv_sge = 2}});
  std::vector<ReceiveWorkRequest> receives;
  for (uint64_t i = 0; i < 6; ++i) receives.push_back({.wr_id = i, .sges = {b.mr.sge()}});
  size_t posted = 99;
  SECTION("no more than fit") {
    CHECK(b.qp.post_recvs(receives, posted) == Errc::queue_full);
    CHECK(posted == 4);
  }
  SECTION("none after one that is refused") {
    receives[2].sges = {b.mr.sge(), b.mr.sge(), b.mr.sge()};
    CHECK(b.qp.post_recvs(receives, posted) == Errc::too_many_sges);
    CHECK(posted == 2);
  }
  SECTION("none in a state that takes none") {
    b.qp.modify(QpState::reset);
    CHECK(b.qp.post_recvs(receives, posted) == Errc::invalid_state);
    CHECK(posted == 0);
    return;
  }
  SECTION("an empty list") {
    CHECK_FALSE(b.qp.post_recvs({}, posted));
    CHECK(posted == 0);
    return;
  }
  for (size_t i = 0; i < posted; ++i) REQUIRE_FALSE(a.send(b.address(), 0, 10));
  world.settle();
  const auto received = drain(b.recv_cq);
  REQUIRE(received.size() == posted);
  for (size_t i = 0; i < posted; ++i) CHECK(received[i].wr_id == i);
}

TEST_CASE("several receives can be posted to a shared receive queue at once") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  SharedReceiveQueue srq(pd, {.max_wr = 4});
  QueuePair qp(pd, {.send_cq = cq, .recv_cq = cq, .srq = srq});
  std::vector<std::byte> memory(100);
  const MemoryRegion region(pd, std::span(memory));
  const std::vector<ReceiveWorkRequest> receives(5, {.sges = {region.sge()}});
  size_t posted = 0;
  CHECK(qp.post_recvs(receives, posted) == Errc::unsupported_operation);
  CHECK(posted == 0);
  CHECK(srq.post_recvs(receives, posted) == Errc::queue_full);
  CHECK(posted == 4);
  CHECK(srq.query().posted == 4);
}

TEST_CASE("A connection that waits goes on when receives are posted together") {
  Couple couple;
  couple.a.fill(pattern(300, 1));
  for (size_t i = 0; i < 3; ++i) REQUIRE_FALSE(couple.a.send(i * 100, 100, i));
  couple.world.settle();
  CHECK(drain(couple.b.recv_cq).empty());
  const ReceiveWorkRequest receives[] = {{.wr_id = 1, .sges = {couple.b.mr->sge(0, 100)}},
                                         {.wr_id = 2, .sges = {couple.b.mr->sge(100, 100)}},
                                         {.wr_id = 3, .sges = {couple.b.mr->sge(200, 100)}}};
  size_t posted = 0;
  REQUIRE_FALSE(couple.b.qp.post_recvs(receives, posted));
  CHECK(posted == 3);
  couple.world.settle();
  CHECK(drain(couple.b.recv_cq).size() == 3);
}

TEST_CASE("Over RC immediate data are a message of their own, and no other has any") {
  Couple couple;
  couple.b.post_receives(1, 100);
  const auto refused = [&](const SendWorkRequest& request) {
    return couple.a.qp.post_send(request) == Errc::invalid_argument;
  };
  CHECK(refused({.sges = couple.a.mr->sge(0, 10), .immediate = 1}));
  CHECK(refused({.sges = couple.a.mr->sge(0, 10), .opcode = WrOpcode::rdma_write, .immediate = 0}));
  CHECK(refused({.opcode = WrOpcode::immediate}));
  CHECK_FALSE(couple.a.qp.post_send({.opcode = WrOpcode::immediate, .immediate = 0}));
}

TEST_CASE("immediate data are refused where the operation over datagrams has none") {
  World world;
  Party a(world.add_device());
  const auto refused = [&](WrOpcode opcode) {
    return a.qp.post_send(
               {.destination = Address::parse("10.0.0.2:5"), .opcode = opcode, .immediate = 1}) ==
           Errc::invalid_argument;
  };
  CHECK(refused(WrOpcode::rdma_read));
  CHECK(refused(WrOpcode::local_invalidate));
}

}  // namespace diwarp::test
