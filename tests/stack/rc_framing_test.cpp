// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// What MPA agreed to holds for whole connections: CRCs, markers, sizes of FPDUs, ready messages.
namespace diwarp::test {

namespace {

/// Everything that a connection carries, once each way.
void check_all_operations(Couple& couple) {
  RcParty& a = couple.a;
  RcParty& b = couple.b;
  const size_t size = 20001;
  for (auto [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    from->fill(pattern(size, 5));
    to->fill(pattern(size, 6), size);
    REQUIRE_FALSE(to->post_recv(1, 0, size));
    REQUIRE_FALSE(to->post_recv(2, 0, 0));
    REQUIRE_FALSE(from->send(0, size, 1));
    REQUIRE_FALSE(from->post(WrOpcode::rdma_write, 0, size, to->remote(2 * size), 2));
    REQUIRE_FALSE(from->post(WrOpcode::rdma_read, 2 * size, size, to->remote(size), 3));
    REQUIRE_FALSE(from->qp.post_send({.wr_id = 4, .opcode = WrOpcode::immediate, .immediate = 9}));
    couple.world.settle();
    REQUIRE(statuses(from->send_cq) == Statuses(4, WcStatus::success));
    REQUIRE(statuses(to->recv_cq) == Statuses(2, WcStatus::success));
    REQUIRE(same(to->bytes(0, size), pattern(size, 5)));
    REQUIRE(same(to->bytes(2 * size, size), pattern(size, 5)));
    REQUIRE(same(from->bytes(2 * size, size), pattern(size, 6)));
  }
}

constexpr RcOptions open_options(uint32_t max_fpdu = 0) {
  return {.memory = 1 << 17, .access = kOpen, .stream = {.max_fpdu = max_fpdu}};
}

}  // namespace

TEST_CASE("Every operation works with markers in either direction, with and without CRCs") {
  const bool crc = GENERATE(true, false);
  const bool send = GENERATE(true, false);
  const bool receive = GENERATE(true, false);
  const uint32_t max_fpdu = GENERATE(0U, 128U, 1000U, 65536U);
  INFO("crc " << crc << " send " << send << " receive " << receive << " fpdu " << max_fpdu);
  Couple couple(open_options(max_fpdu), open_options(max_fpdu),
                {.crc = crc, .send_markers = send, .receive_markers = receive});
  check_all_operations(couple);
  CHECK(couple.a.qp.query().send_markers == send);
  CHECK(couple.b.qp.query().receive_markers == send);
  CHECK(couple.a.qp.query().crc == crc);
}

TEST_CASE("Every kind of ready-to-receive message lets the responder speak, unseen by either side") {
  const ReadyToReceive ready =
      GENERATE(ReadyToReceive::send, ReadyToReceive::write, ReadyToReceive::read);
  const bool markers = GENERATE(false, true);
  Couple couple(open_options(), open_options(),
                {.send_markers = markers, .revision = 2, .ready = ready});
  couple.a.post_receives(1, 100);
  REQUIRE_FALSE(couple.b.send(0, 100));  // the initiator's application has said nothing
  couple.world.settle();
  CHECK(statuses(couple.a.recv_cq) == Statuses{WcStatus::success});
  CHECK(statuses(couple.b.send_cq) == Statuses{WcStatus::success});
  CHECK(drain(couple.b.recv_cq).empty());
  CHECK(drain(couple.a.send_cq).empty());
  check_all_operations(couple);
}

TEST_CASE("Without a ready-to-receive message the responder waits for the initiator's first FPDU") {
  Couple couple;
  couple.a.post_receives(1, 100);
  REQUIRE_FALSE(couple.b.send(0, 100));
  couple.world.settle();
  CHECK(drain(couple.a.recv_cq).empty());
  REQUIRE_FALSE(couple.b.post_recv(0, 0, 10));
  REQUIRE_FALSE(couple.a.send(0, 1));
  couple.world.settle();
  CHECK(statuses(couple.a.recv_cq) == Statuses{WcStatus::success});
}

TEST_CASE("An initiator whose first message is not the agreed one is cut off") {
  World world;
  RcParty b(world.add_device());
  auto ends = llp::memory_stream_pair(1 << 16, 256);
  b.impl().start(
      established(std::move(ends.second), false, {.ready = ReadyToReceive::write}));
  write(*ends.first, to_bytes(Fpdu{.payload = text("hello")}));
  world.settle();
  CHECK(b.qp.state() == QpState::error);
  REQUIRE(b.qp.query().terminate);
  CHECK(b.qp.query().terminate->code == TerminateCode{2, 0, 7});
}

TEST_CASE("The response to a ready-to-receive Read has no bytes") {
  World world;
  RcParty a(world.add_device(), {.access = kOpen});
  auto ends = llp::memory_stream_pair(1 << 16, 256);
  a.impl().start(
      established(std::move(ends.first), true, {.crc = false, .ready = ReadyToReceive::read}));
  world.settle();
  // Length 15; tagged, last, version 1; Read Response; STag 1; TO 0; one byte of payload.
  write(*ends.second, from_hex("000fc142000000010000000000000000ee00000000000000"));
  world.settle();
  REQUIRE(a.qp.query().terminate);
  CHECK(a.qp.query().terminate->code == TerminateCode{1, 1, 1});
}

TEST_CASE("Large FPDUs carry more than a TCP segment each") {
  World world;
  RcParty a(world.add_device(), {.memory = 1 << 20, .stream = {.max_fpdu = 65536}});
  RcParty b(world.add_device(), {.memory = 1 << 20});
  join(a, b, llp::memory_stream_pair(1 << 20, 1460));
  a.fill(pattern(1 << 20, 9));
  REQUIRE_FALSE(b.post_recv(0, 0, 1 << 20));
  REQUIRE_FALSE(a.send(0, 1 << 20));
  world.settle();
  CHECK(same(b.memory, a.memory));
  CHECK(world.devices[0].counter("rc_tx_fpdus") == 17);
}

TEST_CASE("A bad CRC ends the connection with the Terminate for it") {
  World world;
  RcParty b(world.add_device());
  auto ends = llp::memory_stream_pair(1 << 16, 256);
  b.impl().start(established(std::move(ends.second), false));
  REQUIRE_FALSE(b.post_recv(0, 0, 100));
  write(*ends.first, to_bytes(Fpdu{.payload = text("hello"), .crc_error = 1}));
  world.settle();
  CHECK(b.qp.query().terminate->code == TerminateCode{2, 0, 2});
  CHECK(statuses(b.recv_cq) == Statuses{WcStatus::wr_flush_error});
  CHECK(read(*ends.first).size() > 20);
  CHECK(ending_of(*ends.first) == Ending::in_order);
}

TEST_CASE("A marker that points nowhere ends the connection with the Terminate for it") {
  World world;
  RcParty b(world.add_device());
  auto ends = llp::memory_stream_pair(1 << 16, 256);
  b.impl().start(
      established(std::move(ends.second), false, {.crc = false, .receive_markers = true}));
  std::vector<std::byte> bytes = from_hex("00000004");  // at the beginning it has to be zero
  const std::vector<std::byte> fpdu = to_bytes(Fpdu{});
  bytes.insert(bytes.end(), fpdu.begin(), fpdu.end());
  write(*ends.first, bytes);
  world.settle();
  REQUIRE(b.qp.query().terminate);
  CHECK(b.qp.query().terminate->code == TerminateCode{2, 0, 3});
}

}  // namespace diwarp::test
