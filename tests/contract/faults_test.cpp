// SPDX-License-Identifier: Apache-2.0
#include "contract/watched.h"

/// Messages that find no fitting receive, and requests that a side cannot do with its own memory.
namespace diwarp::contract {

TEST_CASE("A Send longer than the receive it finds fails there with local_length_error") {
  Watched pair;
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 10));
  REQUIRE_FALSE(pair.b.post_recv(4, 100, 10));
  REQUIRE_FALSE(pair.a.send(0, 11));
  const WorkCompletion failed = next(pair.b.recv_cq);
  check_error(failed, WcStatus::local_length_error);
  CHECK(failed.wr_id == 3);
  CHECK(failed.opcode == WcOpcode::recv);
  CHECK(failed.qp_number == pair.b.qp.number());
  const WorkCompletion flushed = next(pair.b.recv_cq);
  CHECK(flushed.status == WcStatus::wr_flush_error);
  CHECK(flushed.wr_id == 4);
  pair.check_ended();
}

TEST_CASE("A receive into memory that is gone fails with local_protection_error") {
  Watched pair;
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  pair.b.mr.reset();
  REQUIRE_FALSE(pair.a.send(0, 10));
  const WorkCompletion failed = next(pair.b.recv_cq);
  check_error(failed, WcStatus::local_protection_error);
  CHECK(failed.wr_id == 3);
  pair.check_ended();
  CHECK(pair.b.is_zero(0, 100));
}

TEST_CASE("A receive into memory that may not be written fails with local_protection_error") {
  Watched pair(Access::none);
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(pair.a.send(0, 10));
  check_error(next(pair.b.recv_cq), WcStatus::local_protection_error);
  pair.check_ended();
}

TEST_CASE("A Send of memory that is gone fails with local_protection_error and ends all") {
  Watched pair;
  const Sge sge = pair.a.mr->sge(0, 10);
  pair.a.mr.reset();
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(pair.a.qp.post_send({.wr_id = 5, .sges = sge}));
  const WorkCompletion failed = next(pair.a.send_cq);
  check_error(failed, WcStatus::local_protection_error);
  CHECK(failed.wr_id == 5);
  CHECK(failed.opcode == WcOpcode::send);
  CHECK(failed.qp_number == pair.a.qp.number());
  pair.check_ended();
  CHECK(next(pair.b.recv_cq).status == WcStatus::wr_flush_error);
}

TEST_CASE("An SGE beyond its region fails with local_protection_error") {
  Watched pair;
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(pair.a.send(pair.a.pages.bytes().size() - 9, 10));
  check_error(next(pair.a.send_cq), WcStatus::local_protection_error);
  pair.check_ended();
}

TEST_CASE("An SGE of another protection domain fails with local_protection_error") {
  Watched pair;
  const Foreign foreign(pair.device_a);
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(pair.a.qp.post_send({.sges = foreign.region.sge(0, 10)}));
  check_error(next(pair.a.send_cq), WcStatus::local_protection_error);
  pair.check_ended();
}

TEST_CASE("A Read into memory that may not be written fails with local_protection_error") {
  if (!needs(Capability::read_sinks)) return;
  Pair pair({.access = Access::none}, {.access = kOpen});
  REQUIRE_FALSE(pair.a.read(0, 10, pair.b.remote()));
  check_error(next(pair.a.send_cq), WcStatus::local_protection_error);
  CHECK(pair.b.qp.wait_disconnected(kPatience));
}

TEST_CASE("An unsignaled request that fails has a completion") {
  Watched pair;
  const size_t end = pair.a.pages.bytes().size();
  REQUIRE_FALSE(pair.a.send(end - 9, 10, 5, SendFlags::none));
  const WorkCompletion failed = next(pair.a.send_cq);
  check_error(failed, WcStatus::local_protection_error);
  CHECK(failed.wr_id == 5);
}

TEST_CASE("With the policy terminate a Send that finds no receive ends the connection") {
  Watched pair(kOpen, {.receive_not_ready = ReceiveNotReady::terminate});
  CHECK(pair.b.qp.query().stream.receive_not_ready == ReceiveNotReady::terminate);
  REQUIRE_FALSE(pair.a.send(0, 10));
  pair.check_ended();
}

TEST_CASE("With the policy hold a Send waits for its receive, and what comes after it, too") {
  if (!needs(Capability::held_messages)) return;
  Pair pair({}, {.access = kOpen, .stream = {.receive_not_ready = ReceiveNotReady::hold}});
  pair.a.fill(0, 100, 1);
  REQUIRE_FALSE(pair.a.send(0, 100, 1));
  REQUIRE_FALSE(pair.a.read(1000, 10, pair.b.remote(), 2));
  CHECK(next_good(pair.a.send_cq).wr_id == 1);
  CHECK_FALSE(pair.a.send_cq.wait(kMoment));
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  CHECK(next_good(pair.b.recv_cq).byte_count == 100);
  CHECK(next_good(pair.a.send_cq).wr_id == 2);
  CHECK(pair.b.holds(0, 100, 1));
}

TEST_CASE("A held Send for which no receive comes in time ends the connection") {
  if (!needs(Capability::held_messages)) return;
  Watched pair(kOpen, {.receive_wait = 100ms});
  REQUIRE_FALSE(pair.a.send(0, 10));
  pair.check_ended();
}

}  // namespace diwarp::contract
