// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_hostile.h"

/// MPA's agreement holds for whole connections: CRCs, markers, sizes of FPDUs, ready messages.
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

TEST_CASE(
    "Every kind of ready-to-receive message lets the responder speak, unseen by either side") {
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
  const Wire no_send{};
  const Wire no_write = write_of(0xDEADBEEF, 5, 0);
  const Wire no_read = read_of(0xDEADBEEF, 5, 0);
  struct Case {
    ReadyToReceive agreed;
    Wire first;
  };
  const Case cases[] = {{ReadyToReceive::send, no_write},
                        {ReadyToReceive::send, no_read},
                        {ReadyToReceive::send, Wire{.opcode = 5}},
                        {ReadyToReceive::send, Wire{.body = text("hello")}},
                        {ReadyToReceive::send, Wire{.last = false}},
                        {ReadyToReceive::write, no_send},
                        {ReadyToReceive::write, no_read},
                        {ReadyToReceive::write, write_of(0xDEADBEEF, 5, 1)},
                        {ReadyToReceive::read, no_send},
                        {ReadyToReceive::read, no_write}};
  for (const Case& one : cases) {
    CAPTURE(static_cast<int>(one.agreed), one.first.opcode, one.first.body.size());
    World world;
    RcParty b(world.add_device(), {.access = kOpen});
    auto ends = llp::memory_stream_pair(1 << 16, 256);
    b.impl().start(negotiated(std::move(ends.second), false, {.ready = one.agreed}));
    write(*ends.first, framed(to_ulpdu(one.first)));
    world.settle();
    CHECK(b.qp.state() == QpState::error);
    CHECK(terminate_in(read(*ends.first)).code == "2/0/7");
  }
}

TEST_CASE("A ready-to-receive message takes no receive, and the memory it names is not looked at") {
  struct Case {
    ReadyToReceive agreed;
    Wire first;
  };
  const Case cases[] = {{ReadyToReceive::send, Wire{}},
                        {ReadyToReceive::write, write_of(0xDEADBEEF, 5, 0)},
                        {ReadyToReceive::read, read_of(0xDEADBEEF, 5, 0)}};
  for (const Case& one : cases) {
    CAPTURE(static_cast<int>(one.agreed));
    World world;
    RcParty b(world.add_device());
    b.post_receives(1, 100);
    auto ends = llp::memory_stream_pair(1 << 16, 256);
    b.impl().start(negotiated(std::move(ends.second), false, {.ready = one.agreed}));
    write(*ends.first, framed(to_ulpdu(one.first)));
    world.settle();
    CHECK(b.qp.state() == QpState::rts);
    CHECK(b.qp.query().posted_receives == 1);
    CHECK(drain(b.recv_cq).empty());
    // And the next Send takes it, whose MSN counts a Send that made ready.
    const uint32_t msn = one.agreed == ReadyToReceive::send ? 2 : 1;
    write(*ends.first, framed(to_ulpdu(Wire{.msn = msn, .body = text("hello")})));
    world.settle();
    CHECK(statuses(b.recv_cq) == Statuses{WcStatus::success});
  }
}

TEST_CASE("A ready-to-receive Read of some length is refused and not served") {
  World world;
  RcParty b(world.add_device(), {.access = kOpen});
  auto ends = llp::memory_stream_pair(1 << 16, 256);
  b.impl().start(negotiated(std::move(ends.second), false, {.ready = ReadyToReceive::read}));
  SECTION("of no length it is served") {
    write(*ends.first, framed(to_ulpdu(read_of(1, 0, 0))));
    world.settle();
    CHECK(b.qp.state() == QpState::rts);
    // Length 14; tagged, last, version 1; Read Response to the sink; no payload.
    CHECK(same(first_of(read(*ends.first), 16), hex("000ec142112233440000000000001000")));
  }
  SECTION("though the memory is open to Reads") {
    const uint32_t length = GENERATE(1U, 100U, 0xFFFFFFFFU);
    write(*ends.first, framed(to_ulpdu(read_of(b.mr->rkey(), b.mr->base(), length))));
    world.settle();
    CHECK(b.qp.state() == QpState::error);
    CHECK(terminate_in(read(*ends.first)).code == "2/0/7");
  }
}

TEST_CASE("The response to a ready-to-receive Read has no bytes") {
  World world;
  RcParty a(world.add_device(), {.access = kOpen});
  auto ends = llp::memory_stream_pair(1 << 16, 256);
  a.impl().start(
      negotiated(std::move(ends.first), true, {.crc = false, .ready = ReadyToReceive::read}));
  world.settle();
  // Length 15; tagged, last, version 1; Read Response; STag 1; TO 0; one byte of payload.
  write(*ends.second, hex("000fc142000000010000000000000000ee00000000000000"));
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

namespace {

/// A responder whose peer is the bare other end of its stream.
struct Responder {
  explicit Responder(const mpa::NegotiatedParameters& parameters) : party(world.add_device()) {
    auto ends = llp::memory_stream_pair(1 << 16, 256);
    peer = std::move(ends.first);
    party.impl().start(negotiated(std::move(ends.second), false, parameters));
    party.post_receives(2, 1000);
  }

  void feed(std::span<const std::byte> bytes) {
    write(*peer, bytes);
    world.settle();
  }
  /// It ended with this fault, without a word to the peer.
  void check_ended_silently(const TerminateCode& fault) {
    CHECK(party.qp.state() == QpState::error);
    CHECK(read(*peer).empty());
    CHECK(ending_of(*peer) == Ending::reset);
    REQUIRE(party.qp.query().terminate);
    CHECK(party.qp.query().terminate->code == fault);
    CHECK(world.devices[0].counter("rc_terminates_sent") == 0);
    CHECK(statuses(party.recv_cq) == Statuses(2, WcStatus::wr_flush_error));
  }

  World world;
  RcParty party;
  StreamEnd peer;
};

/// An FPDU with one marker, in front of it, which points there and back by so many bytes.
std::vector<std::byte> marked(uint32_t pointer, const Fpdu& fpdu = {}) {
  std::vector<std::byte> bytes;
  append(bytes, pointer, 4);
  const std::vector<std::byte> rest = fpdu_bytes(fpdu);
  bytes.insert(bytes.end(), rest.begin(), rest.end() - 4);
  const uint32_t crc = castagnoli(bytes);
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<std::byte>(crc >> shift));
  return bytes;
}

}  // namespace

TEST_CASE("A bad CRC ends the connection with the Terminate for it") {
  Responder responder({});
  responder.feed(fpdu_bytes(Fpdu{.payload = text("good")}));
  responder.feed(fpdu_bytes(Fpdu{.msn = 2, .payload = text("hello"), .crc_error = 1}));
  CHECK(responder.party.qp.query().terminate->code == TerminateCode{2, 0, 2});
  CHECK(statuses(responder.party.recv_cq) == Statuses{WcStatus::success, WcStatus::wr_flush_error});
  CHECK(terminate_in(read(*responder.peer)).code == "2/0/2");
  CHECK(ending_of(*responder.peer) == Ending::in_order);
}

TEST_CASE("A marker that points nowhere ends the connection with the Terminate for it") {
  Responder responder({.receive_markers = true});
  // An FPDU of 508 bytes with the marker in front of it: the next one begins with a marker, too.
  responder.feed(marked(0, {.last = false, .payload = std::vector<std::byte>(484)}));
  REQUIRE(responder.party.qp.state() == QpState::rts);
  responder.feed(marked(4, {.offset = 484}));  // there it has to be zero
  REQUIRE(responder.party.qp.query().terminate);
  CHECK(responder.party.qp.query().terminate->code == TerminateCode{2, 0, 3});
  CHECK(terminate_in(read(*responder.peer)).code == "2/0/3");
}

TEST_CASE("A marker's two low pointer bits are not looked at") {
  const uint32_t low = GENERATE(1U, 2U, 3U);
  Responder responder({.receive_markers = true});
  responder.feed(marked(low, {.payload = text("hello")}));
  CHECK(statuses(responder.party.recv_cq) == Statuses{WcStatus::success});
  CHECK(responder.party.qp.state() == QpState::rts);
}

TEST_CASE("A responder to whom no valid FPDU came ends the connection without a Terminate") {
  SECTION("at a wrong CRC") {
    Responder responder({});
    responder.feed(fpdu_bytes(Fpdu{.payload = text("hello"), .crc_error = 1}));
    responder.check_ended_silently({2, 0, 2});
  }
  SECTION("at a marker that points nowhere") {
    Responder responder({.receive_markers = true});
    responder.feed(marked(4));
    responder.check_ended_silently({2, 0, 3});
  }
  SECTION("but answers an FPDU that MPA finds valid, whatever DDP finds") {
    Responder responder({});
    responder.feed(fpdu_bytes(Fpdu{.msn = 2}));
    CHECK(terminate_in(read(*responder.peer)).code == "1/2/3");
  }
}

TEST_CASE("An initiator answers a bad first FPDU with a Terminate") {
  World world;
  RcParty a(world.add_device());
  auto ends = llp::memory_stream_pair(1 << 16, 256);
  a.impl().start(negotiated(std::move(ends.second), true));
  write(*ends.first, fpdu_bytes(Fpdu{.crc_error = 1}));
  world.settle();
  CHECK(terminate_in(read(*ends.first)).code == "2/0/2");
}

}  // namespace diwarp::test
