// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// Receives that are missing or too small, memory that goes, and peers that vanish.
namespace diwarp::test {

// --- Receives.

TEST_CASE("An RC message longer than its receive ends the connection") {
  Couple couple;
  REQUIRE_FALSE(couple.b.post_recv(1, 0, 99));
  REQUIRE_FALSE(couple.b.post_recv(2, 100, 99));
  const size_t length = GENERATE(100U, 1000U);
  REQUIRE_FALSE(couple.a.send(0, length));
  couple.world.settle();
  CHECK(statuses(couple.b.recv_cq) ==
        Statuses{WcStatus::local_length_error, WcStatus::wr_flush_error});
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(couple.a.qp.state() == QpState::error);
  CHECK(couple.device_of_b().counter("rc_protocol_errors") == 1);
  CHECK(couple.world.devices[0].counter("rc_resets") == 1);
}

TEST_CASE("An RC message that finds no receive waits for one") {
  Couple couple;
  couple.a.fill(pattern(1000, 1));
  for (uint64_t i = 0; i < 10; ++i) REQUIRE_FALSE(couple.a.send(i * 100, 100, i));
  couple.world.settle();
  CHECK(drain(couple.b.recv_cq).empty());
  CHECK(couple.b.qp.state() == QpState::rts);
  for (uint64_t i = 0; i < 10; ++i) {
    REQUIRE_FALSE(couple.b.post_recv(i, i * 100, 100));
    couple.world.settle();
    const auto received = drain(couple.b.recv_cq);
    REQUIRE(received.size() == 1);
    CHECK(received[0].wr_id == i);
  }
  CHECK(same(couple.b.bytes(0, 1000), couple.a.bytes(0, 1000)));
  CHECK(couple.device_of_b().counter("rc_rx_fpdus") == 10);
}

TEST_CASE("An RC message that finds no receive for a minute ends the connection") {
  Couple couple;
  REQUIRE_FALSE(couple.a.send(0, 100));
  couple.world.settle();
  couple.world.advance(59s);
  CHECK(couple.b.qp.state() == QpState::rts);
  couple.world.advance(2s);
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(couple.a.qp.state() == QpState::error);
}

TEST_CASE("An RC receive that came in time stops the clock") {
  Couple couple;
  REQUIRE_FALSE(couple.a.send(0, 100));
  couple.world.settle();
  couple.world.advance(59s);
  REQUIRE_FALSE(couple.b.post_recv(1, 0, 100));
  couple.world.settle();
  couple.world.advance(120s);
  CHECK(couple.b.qp.state() == QpState::rts);
  CHECK(statuses(couple.b.recv_cq) == Statuses{WcStatus::success});
}

TEST_CASE("Two RC peers that both wait for receives go on once one gets its own") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a(one, {.memory = 2 << 20});
  RcParty b(other, {.memory = 2 << 20});
  join(a, b, socket_streams(4096));
  a.fill(pattern(1 << 20, 1));
  b.fill(pattern(1 << 20, 2));
  REQUIRE_FALSE(a.send(0, 1));
  for (uint64_t i = 0; i < 16; ++i) {
    REQUIRE_FALSE(a.send(i << 16, 1 << 16, i));
    REQUIRE_FALSE(b.send(i << 16, 1 << 16, i));
  }
  // The sockets are full in both directions now, or will be soon; neither reads.
  REQUIRE_FALSE(b.post_recv(99, 1 << 20, 1));
  CHECK(next(b.recv_cq).byte_count == 1);
  const auto receive_all = [](RcParty& party) {
    for (uint64_t i = 0; i < 16; ++i) {
      REQUIRE_FALSE(party.post_recv(i, (1 << 20) + (i << 16), 1 << 16));
      const WorkCompletion received = next(party.recv_cq);
      REQUIRE(received.status == WcStatus::success);
      REQUIRE(received.wr_id == i);
    }
  };
  receive_all(a);
  receive_all(b);
  CHECK(same(a.bytes(1 << 20, 1 << 20), b.bytes(0, 1 << 20)));
  CHECK(same(b.bytes(1 << 20, 1 << 20), a.bytes(0, 1 << 20)));
}

TEST_CASE("An RC receive whose memory may not be written fails and ends the connection") {
  Couple couple;
  std::vector<std::byte> other(100);
  MemoryRegion region(couple.b.pd, std::span(other), Access::none);
  const bool read_only = GENERATE(true, false);
  const Sge sge{other.data(), 100, read_only ? region.lkey() : region.lkey() + 1};
  REQUIRE_FALSE(couple.b.qp.post_recv({.wr_id = 5, .sges = {&sge, 1}}));
  REQUIRE_FALSE(couple.a.send(0, 100));
  couple.world.settle();
  CHECK(statuses(couple.b.recv_cq) == Statuses{WcStatus::local_protection_error});
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(same(other, std::vector<std::byte>(100)));
}

TEST_CASE("A region that goes while an RC message is being received ends the connection") {
  World world;
  RcParty party(world.add_device());
  auto ends = llp::memory_stream_pair();
  party.impl().start(negotiated(std::move(ends.second), false));
  party.post_receives(2, 100);
  write(*ends.first, fpdu_bytes(Fpdu{.last = false, .payload = text("half")}));
  world.settle();
  party.mr.reset();
  write(*ends.first, fpdu_bytes(Fpdu{.offset = 4, .payload = text("more")}));
  world.settle();
  CHECK(statuses(party.recv_cq) ==
        Statuses{WcStatus::local_protection_error, WcStatus::wr_flush_error});
  CHECK(same(party.bytes(4, 4), std::vector<std::byte>(4)));
}

// --- Sends whose memory goes.

TEST_CASE("An RC send whose region has gone fails, after those before it went out") {
  World world;
  RcParty party(world.add_device());
  auto ends = llp::memory_stream_pair();
  party.impl().start(negotiated(std::move(ends.second), false));
  std::vector<std::byte> other(100);
  std::optional<MemoryRegion> region(std::in_place, party.pd, std::span(other));
  const Sge sge = region->sge();
  party.fill(text("diwarp"));
  REQUIRE_FALSE(party.send(0, 6, 1));
  REQUIRE_FALSE(party.qp.post_send({.wr_id = 2, .sges = {&sge, 1}, .flags = SendFlags::none}));
  REQUIRE_FALSE(party.send(0, 6, 3, SendFlags::none));
  region.reset();
  party.post_receives(1, 100);
  write(*ends.first, fpdu_bytes(Fpdu{}));  // lets the responder send
  world.settle();
  CHECK(statuses(party.send_cq) ==
        Statuses{WcStatus::success, WcStatus::local_protection_error, WcStatus::wr_flush_error});
  // And after it a Terminate: a local catastrophic error.
  const std::vector<std::byte> sent = read(*ends.first);
  const std::vector<std::byte> whole = fpdu_bytes(Fpdu{.payload = text("diwarp")});
  REQUIRE(sent.size() == whole.size() + 28);
  CHECK(same(std::span(sent).first(whole.size()), whole));
  CHECK(ending_of(*ends.first) == Ending::in_order);
  CHECK(party.qp.state() == QpState::error);
}

TEST_CASE("An RC send whose region goes while it is half out ends the connection") {
  World world;
  RcParty party(world.add_device());
  auto ends = llp::memory_stream_pair(50);
  party.impl().start(negotiated(std::move(ends.second), true));
  REQUIRE_FALSE(party.send(0, 1000, 1));
  REQUIRE_FALSE(party.send(0, 1000, 2));
  world.settle();
  party.mr.reset();
  CHECK(read(*ends.first).size() == 50);
  world.settle();
  CHECK(statuses(party.send_cq) ==
        Statuses{WcStatus::local_protection_error, WcStatus::wr_flush_error});
  CHECK(party.qp.state() == QpState::error);
  CHECK(ending_of(*ends.first) == Ending::reset);
}

// --- Peers that vanish.

TEST_CASE("A peer that vanishes inside an RC message fails its receive and flushes the rest") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  auto [peer, mine] = raw_pair();
  party.post_receives(3, 100);
  party.impl().start(negotiated(stream_of(std::move(mine)), false));
  REQUIRE(peer.send(fpdu_bytes(Fpdu{.payload = text("whole")})));
  CHECK(next(party.recv_cq).status == WcStatus::success);
  const std::vector<std::byte> half =
      fpdu_bytes(Fpdu{.msn = 2, .last = false, .payload = text("half")});
  const std::vector<std::byte> rest =
      fpdu_bytes(Fpdu{.msn = 2, .offset = 4, .payload = text("rest")});
  REQUIRE(peer.send(half));
  bool may_overtake = false;
  SECTION("closing between two FPDUs") { peer.shutdown(); }
  SECTION("closing inside an FPDU") {
    REQUIRE(peer.send(std::span(rest).first(11)));
    peer.shutdown();
  }
  SECTION("with a reset, which may overtake what was sent before") {
    may_overtake = true;
    peer.reset();
  }
  const WorkCompletion broken = next(party.recv_cq);
  CHECK(broken.wr_id == 1);
  CHECK((broken.status == WcStatus::general_error ||
         (may_overtake && broken.status == WcStatus::wr_flush_error)));
  CHECK(next(party.recv_cq).status == WcStatus::wr_flush_error);
  CHECK(party.qp.wait_disconnected(kPatience));
  CHECK(device.counter("rc_resets") == 1);
  CHECK(device.counter("rc_disconnects") == 0);
}

TEST_CASE("A peer that closes between two RC messages flushes what is posted") {
  Couple couple;
  couple.b.post_receives(2, 100);
  REQUIRE_FALSE(couple.b.send(0, 100));  // waits for the initiator's first message
  couple.world.settle();
  couple.a.qp.modify(QpState::reset);
  couple.world.settle();
  CHECK(statuses(couple.b.recv_cq) == Statuses(2, WcStatus::wr_flush_error));
  CHECK(statuses(couple.b.send_cq) == Statuses{WcStatus::wr_flush_error});
  CHECK(couple.b.qp.state() == QpState::error);
  CHECK(couple.device_of_b().counter("rc_disconnects") == 1);
}

TEST_CASE(
    "Bytes that an RC peer sent before it vanished are delivered even if sending fails first") {
  World world;
  RcParty party(world.add_device());
  auto [peer, mine] = raw_pair();
  party.impl().start(negotiated(stream_of(std::move(mine)), true));
  party.post_receives(2, 100);
  REQUIRE(peer.send(fpdu_bytes(Fpdu{.payload = text("last bytes")})));
  peer.reset();
  // The first send may find the stream broken before anything was read.
  REQUIRE_FALSE(party.send(0, 100));
  REQUIRE(eventually([&] {
    world.settle();
    return party.qp.state() == QpState::error;
  }));
  const auto received = drain(party.recv_cq);
  REQUIRE(received.size() == 2);
  CHECK(received[0].status == WcStatus::success);
  CHECK(same(party.bytes(0, 10), text("last bytes")));
  CHECK(received[1].status == WcStatus::wr_flush_error);
}

TEST_CASE("A reset reaches an RC queue pair that holds its stream", "[kernel]") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  auto [peer, mine] = raw_pair();
  party.impl().start(negotiated(stream_of(std::move(mine)), false));
  REQUIRE(peer.send(fpdu_bytes(Fpdu{.payload = text("unwanted")})));
  REQUIRE(eventually([&] { return device.counter("rc_rx_bytes") != 0; }));
  peer.reset();
  CHECK(party.qp.wait_disconnected(kPatience));
  CHECK(device.counter("rc_resets") == 1);
}

}  // namespace diwarp::test
