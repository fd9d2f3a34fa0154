// SPDX-License-Identifier: Apache-2.0
#include "contract/pair.h"

/// Memory that is taken back: by its owner, by a peer's Send, and by a Read.
namespace diwarp::contract {

namespace {

constexpr Access kRevocable = kOpen | Access::remote_invalidate;

/// A region of `party`'s beside its own.
struct Lent {
  explicit Lent(Party& party, Access access = kRevocable)
      : pages(4096), region(party.pd, pages.bytes(), access) {}
  RemoteMemory remote() const { return {region.rkey(), region.base()}; }
  Pages pages;
  MemoryRegion region;
};

std::error_code send_with_invalidate(Party& party, STag stag, SendFlags more = SendFlags::none) {
  return party.qp.post_send({.sges = party.mr->sge(0, 10),
                             .flags = SendFlags::signaled | more,
                             .opcode = WrOpcode::send_with_invalidate,
                             .invalidate_stag = stag});
}

}  // namespace

TEST_CASE("A Send with Invalidate invalidates the region, and the receiver is told which") {
  Pair pair;
  const Lent lent(pair.b);
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  pair.a.fill(0, 10, 1);
  REQUIRE_FALSE(send_with_invalidate(pair.a, lent.region.rkey()));
  const WorkCompletion received = next_good(pair.b.recv_cq);
  CHECK(received.wr_id == 3);
  CHECK(received.opcode == WcOpcode::recv);
  CHECK(received.byte_count == 10);
  check_told(received, lent.region.rkey());
  CHECK_FALSE(received.solicited);
  CHECK(pair.b.holds(0, 10, 1));
  if (needs(Capability::told_invalidations)) CHECK_FALSE(lent.region.valid());
  CHECK(next_good(pair.a.send_cq).opcode == WcOpcode::send);
}

TEST_CASE("A Send with Invalidate may be solicited") {
  Pair pair;
  const Lent lent(pair.b);
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(send_with_invalidate(pair.a, lent.region.rkey(), SendFlags::solicited));
  const WorkCompletion received = next_good(pair.b.recv_cq);
  if (needs(Capability::solicited_events)) CHECK(received.solicited);
  check_told(received, lent.region.rkey());
}

TEST_CASE("A region that a peer invalidated refuses its Writes, and the connection ends") {
  Pair pair;
  const Lent lent(pair.b);
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(send_with_invalidate(pair.a, lent.region.rkey()));
  next_good(pair.b.recv_cq);
  pair.a.fill(0, 100, 1);
  REQUIRE_FALSE(pair.a.write(0, 100, lent.remote()));
  CHECK(pair.a.qp.wait_disconnected(kPatience));
  CHECK(pair.b.qp.wait_disconnected(kPatience));
  CHECK(lent.pages.bytes()[0] == std::byte{0});
}

TEST_CASE("A region that does not allow it is not invalidated by a peer, whose connection ends") {
  if (!needs(Capability::invalidate_rights)) return;
  Pair pair;
  const Lent lent(pair.b, kOpen);
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(send_with_invalidate(pair.a, lent.region.rkey()));
  CHECK(next(pair.b.recv_cq).status != WcStatus::success);
  CHECK(pair.a.qp.wait_disconnected(kPatience));
  CHECK(pair.b.qp.wait_disconnected(kPatience));
  CHECK(lent.region.valid());
}

TEST_CASE("A Send that invalidates an STag of nothing ends the connection") {
  Pair pair;
  STag gone = 0;
  {
    const Lent lent(pair.b);
    gone = lent.region.rkey();
  }
  REQUIRE_FALSE(pair.b.post_recv(3, 0, 100));
  REQUIRE_FALSE(send_with_invalidate(pair.a, gone));
  CHECK(next(pair.b.recv_cq).status != WcStatus::success);
  CHECK(pair.a.qp.wait_disconnected(kPatience));
}

TEST_CASE("local_invalidate invalidates a region, when its turn comes") {
  if (!needs(Capability::local_invalidate)) return;
  Pair pair;
  const Lent lent(pair.a);
  test::fill(lent.pages.bytes().first(2000), 4);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 2000));
  REQUIRE_FALSE(pair.a.qp.post_send({.wr_id = 1, .sges = lent.region.sge(0, 2000)}));
  REQUIRE_FALSE(pair.a.qp.post_send(
      {.wr_id = 2, .opcode = WrOpcode::local_invalidate, .invalidate_stag = lent.region.lkey()}));
  CHECK(next_good(pair.a.send_cq).wr_id == 1);
  const WorkCompletion invalidated = next_good(pair.a.send_cq);
  CHECK(invalidated.wr_id == 2);
  CHECK(invalidated.opcode == WcOpcode::local_invalidate);
  CHECK_FALSE(lent.region.valid());
  CHECK(next_good(pair.b.recv_cq).byte_count == 2000);
  CHECK(pair.b.holds(0, 2000, 4));
}

TEST_CASE("A region that its owner invalidated names nothing for the owner either") {
  if (!needs(Capability::local_invalidate)) return;
  Pair pair;
  const Lent lent(pair.a);
  REQUIRE_FALSE(pair.a.qp.post_send(
      {.opcode = WrOpcode::local_invalidate, .invalidate_stag = lent.region.lkey()}));
  next_good(pair.a.send_cq);
  REQUIRE_FALSE(pair.a.qp.post_send({.sges = lent.region.sge(0, 10)}));
  check_error(next(pair.a.send_cq), WcStatus::local_protection_error);
}

TEST_CASE("Invalidating an STag of nothing fails with window_bind_error") {
  if (!needs(Capability::local_invalidate)) return;
  Pair pair;
  STag gone = 0;
  {
    const Lent lent(pair.a);
    gone = lent.region.lkey();
  }
  REQUIRE_FALSE(
      pair.a.qp.post_send({.opcode = WrOpcode::local_invalidate, .invalidate_stag = gone}));
  CHECK(next(pair.a.send_cq).status == WcStatus::window_bind_error);
}

TEST_CASE("A Read with Invalidate fetches, and then invalidates its own sink") {
  if (!needs(Capability::read_with_invalidate)) return;
  Pair pair({}, {.access = kOpen});
  const Lent sink(pair.a, Access::local_write);
  pair.b.fill(0, 1000, 5);
  REQUIRE_FALSE(pair.a.qp.post_send({.wr_id = 9,
                                     .sges = sink.region.sge(0, 1000),
                                     .opcode = WrOpcode::rdma_read_with_invalidate,
                                     .remote = pair.b.remote()}));
  const WorkCompletion read = next_good(pair.a.send_cq);
  CHECK(read.wr_id == 9);
  CHECK(read.opcode == WcOpcode::rdma_read);
  CHECK_FALSE(test::first_wrong(sink.pages.bytes().first(1000), 5));
  CHECK_FALSE(sink.region.valid());
}

}  // namespace diwarp::contract
