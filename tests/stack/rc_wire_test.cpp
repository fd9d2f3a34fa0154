// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// The bytes on the wire, against bytes written from RFC 5044, 5041 and 5040.
namespace diwarp::test {

namespace {

// A Send of six bytes, a solicited one of none after it, and an answer to the first: length field,
// header (control octets, reserved, QN, MSN, MO), payload, padding, CRC.
const char* const kFirstSend =
    "0018"
    "4143"
    "00000000"
    "00000000"
    "00000001"
    "00000000"
    "646977617270"
    "0000"
    "5eab6287";
const char* const kSecondSend =
    "0012"
    "4145"
    "00000000"
    "00000000"
    "00000002"
    "00000000"
    "9f746d49";
const char* const kAnswer =
    "0018"
    "4143"
    "00000000"
    "00000000"
    "00000001"
    "00000000"
    "616e73776572"
    "0000"
    "2b881de0";

/// An RC queue pair, in a world of its own, that a bare stream leads to.
struct Victim {
  explicit Victim(bool initiator = false, bool crc = true)
      : Victim(initiator, {.crc = crc}, RcOptions{}) {}

  Victim(bool initiator, const mpa::NegotiatedParameters& parameters, const RcOptions& options)
      : device(world.add_device()), party(device, options) {
    auto ends = llp::memory_stream_pair(1 << 20, 256);
    wire = std::move(ends.first);
    party.impl().start(negotiated(std::move(ends.second), initiator, parameters));
  }

  void feed(std::span<const std::byte> bytes) {
    write(*wire, bytes);
    world.settle();
  }

  World world;
  Device& device;
  RcParty party;
  StreamEnd wire;
};

}  // namespace

TEST_CASE("The bytes of these tests' own FPDUs are those worked out by hand") {
  CHECK(fpdu_bytes(Fpdu{.payload = text("diwarp")}) == hex(kFirstSend));
  CHECK(fpdu_bytes(Fpdu{.msn = 2, .opcode = 5}) == hex(kSecondSend));
  CHECK(fpdu_bytes(Fpdu{.payload = text("answer")}) == hex(kAnswer));
}

TEST_CASE("An RC initiator speaks MPA, DDP and RDMAP with a plain socket") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  RawListener listener;
  auto connecting = std::async(std::launch::async, [&] {
    const auto hello = text("hello");
    return party.qp.connect(listener.address(), {.private_data = hello, .revision = 1});
  });
  RawStream peer = listener.accept();
  CHECK(peer.receive(25) == hex("4d504120494420526571204672616d65"
                                "40"
                                "01"
                                "0005"
                                "68656c6c6f"));
  REQUIRE(
      peer.send(hex("4d504120494420526570204672616d65"
                    "40"
                    "01"
                    "0003"
                    "796573")));
  CHECK(connecting.get() == text("yes"));

  party.fill(text("diwarp"));
  REQUIRE_FALSE(party.send(0, 6, 1));
  REQUIRE_FALSE(party.send(0, 0, 2, SendFlags::signaled | SendFlags::solicited));
  CHECK(peer.receive(32) == hex(kFirstSend));
  CHECK(peer.receive(24) == hex(kSecondSend));
  CHECK(next(party.send_cq).wr_id == 1);
  CHECK(next(party.send_cq).wr_id == 2);

  party.post_receives(1, 100);
  REQUIRE(peer.send(hex(kAnswer)));
  CHECK(next(party.recv_cq).byte_count == 6);
  CHECK(same(party.bytes(0, 6), text("answer")));
  peer.shutdown();
  CHECK(party.qp.wait_disconnected(kPatience));
  CHECK(peer.ending() == Ending::in_order);
  CHECK(device.counter("rc_disconnects") == 1);
}

TEST_CASE("An RC responder speaks MPA, DDP and RDMAP with a plain socket") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  Listener listener(device, 0);
  RawStream peer = RawStream::connect(listener.address());
  REQUIRE(
      peer.send(hex("4d504120494420526571204672616d65"
                    "40"
                    "01"
                    "0002"
                    "6869")));
  auto request = listener.get_request(kPatience);
  REQUIRE(request);
  CHECK(same(request->private_data(), text("hi")));
  party.post_receives(2, 100);
  request->accept(party.qp, {.private_data = text("welcome")});
  CHECK(peer.receive(27) == hex("4d504120494420526570204672616d65"
                                "40"
                                "01"
                                "0007"
                                "77656c636f6d65"));

  REQUIRE(peer.send(hex(std::string(kFirstSend) + kSecondSend)));
  CHECK(next(party.recv_cq).byte_count == 6);
  const WorkCompletion second = next(party.recv_cq);
  CHECK(second.byte_count == 0);
  CHECK(second.solicited);
  CHECK(same(party.bytes(0, 6), text("diwarp")));
  party.fill(text("answer"));
  REQUIRE_FALSE(party.send(0, 6));
  CHECK(peer.receive(32) == hex(kAnswer));
  peer.shutdown();
  CHECK(peer.ending() == Ending::in_order);
  CHECK(party.qp.wait_disconnected(kPatience));
}

TEST_CASE("An RC responder sends nothing before the initiator's first FPDU") {
  Victim victim;
  victim.party.fill(text("answer"), 500);
  REQUIRE_FALSE(victim.party.send(500, 6));
  victim.world.settle();
  CHECK(read(*victim.wire).empty());
  SECTION("which finds a receive") { victim.party.post_receives(1, 100); }
  SECTION("which finds none and is held") {}
  victim.feed(hex(kFirstSend));
  CHECK(read(*victim.wire) == hex(kAnswer));
}

TEST_CASE("An RC responder with responder_begins sends before the initiator's first FPDU") {
  Victim victim(false, {}, {.stream = {.responder_begins = true}});
  victim.party.fill(text("answer"), 500);
  REQUIRE_FALSE(victim.party.send(500, 6));
  victim.world.settle();
  CHECK(read(*victim.wire) == hex(kAnswer));
  CHECK(statuses(victim.party.send_cq) == Statuses{WcStatus::success});
  victim.party.post_receives(1, 100);
  victim.feed(hex(kFirstSend));
  CHECK(statuses(victim.party.recv_cq) == Statuses{WcStatus::success});
}

TEST_CASE("An RC responder with responder_begins waits for an agreed ready-to-receive message") {
  Victim victim(false, {.ready = ReadyToReceive::send}, {.stream = {.responder_begins = true}});
  victim.party.fill(text("answer"), 500);
  REQUIRE_FALSE(victim.party.send(500, 6));
  victim.world.settle();
  CHECK(read(*victim.wire).empty());
  victim.feed(fpdu_bytes(Fpdu{}));
  CHECK(read(*victim.wire) == hex(kAnswer));
}

TEST_CASE("RC messages are cut into FPDUs that fit TCP's segments") {
  Victim victim(true);
  const std::vector<std::byte> contents = pattern(500, 1);
  victim.party.fill(contents);
  REQUIRE_FALSE(victim.party.send(0, 500, 1, SendFlags::solicited));
  REQUIRE_FALSE(victim.party.send(0, 1, 2));
  victim.world.settle();
  // 256 bytes hold an FPDU with a ULPDU of 250 bytes, of which 18 are the header.
  const auto part = [&](size_t from, size_t to) {
    return std::vector<std::byte>(contents.begin() + static_cast<ptrdiff_t>(from),
                                  contents.begin() + static_cast<ptrdiff_t>(to));
  };
  std::vector<std::byte> expected;
  for (const Fpdu& fpdu :
       {Fpdu{.last = false, .payload = part(0, 232), .opcode = 5},
        Fpdu{.offset = 232, .last = false, .payload = part(232, 464), .opcode = 5},
        Fpdu{.offset = 464, .payload = part(464, 500), .opcode = 5},
        Fpdu{.msn = 2, .payload = part(0, 1)}}) {
    const std::vector<std::byte> bytes = fpdu_bytes(fpdu);
    CHECK(bytes.size() <= 256);
    expected.insert(expected.end(), bytes.begin(), bytes.end());
  }
  CHECK(read(*victim.wire) == expected);
}

TEST_CASE("RC messages of several FPDUs are put together in their receive") {
  Victim victim;
  victim.party.post_receives(1, 100);
  victim.feed(fpdu_bytes(Fpdu{.last = false, .payload = text("one ")}));
  victim.feed(fpdu_bytes(Fpdu{.offset = 4, .last = false, .payload = text("message")}));
  victim.feed(fpdu_bytes(Fpdu{.offset = 11, .last = false}));
  CHECK(drain(victim.party.recv_cq).empty());
  victim.feed(fpdu_bytes(Fpdu{.offset = 11}));
  const auto received = drain(victim.party.recv_cq);
  REQUIRE(received.size() == 1);
  CHECK(received[0].byte_count == 11);
  CHECK(same(victim.party.bytes(0, 11), text("one message")));
}

TEST_CASE("RC without CRCs sends zeros in their place and looks at none") {
  Victim victim(true, false);
  victim.party.fill(text("diwarp"));
  victim.party.post_receives(1, 100);
  REQUIRE_FALSE(victim.party.send(0, 6));
  victim.feed(fpdu_bytes(Fpdu{.payload = text("answer"), .crc_error = 1}));
  CHECK(read(*victim.wire) == fpdu_bytes(Fpdu{.payload = text("diwarp"), .crc = false}));
  CHECK(drain(victim.party.recv_cq).size() == 1);
}

TEST_CASE("Bytes that came after the MPA frame are the first of the stream") {
  World world;
  RcParty party(world.add_device());
  party.post_receives(2, 100);
  auto ends = llp::memory_stream_pair();
  auto bytes = hex(std::string(kFirstSend) + kSecondSend);
  const bool all = GENERATE(true, false);
  const size_t cut = all ? bytes.size() : 41;
  auto connection = negotiated(std::move(ends.second), false);
  connection.leftover.assign(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(cut));
  party.impl().start(std::move(connection));
  if (!all) write(*ends.first, std::span(bytes).subspan(cut));
  world.settle();
  CHECK(drain(party.recv_cq).size() == 2);
  CHECK(same(party.bytes(0, 6), text("diwarp")));
}

TEST_CASE("A breach of the protocol ends its RC connection and no other") {
  struct Case {
    const char* what;
    Fpdu fpdu;
    const char* counter = "rc_protocol_errors";
  };
  const Case broken = GENERATE(
      Case{"a wrong CRC", {.payload = text("x"), .crc_error = 1}, "rc_crc_errors"},
      Case{"an MSN of a message before", {.msn = 1}},
      Case{"an MSN of a message to come", {.msn = 3}},
      Case{"a message that does not begin at its beginning", {.msn = 2, .offset = 1}},
      Case{"another queue", {.msn = 2, .queue_number = 1}},
      Case{"a queue that nobody knows", {.msn = 2, .queue_number = 3}},
      Case{"an RDMA Write", {.msn = 2, .opcode = 0}},
      Case{"an opcode that nobody knows", {.msn = 2, .opcode = 12}},
      Case{"DDP version 0", {.msn = 2, .ddp_version = 0}},
      Case{"DDP version 2", {.msn = 2, .ddp_version = 2}},
      Case{"RDMAP version 0", {.msn = 2, .rdmap_version = 0}},
      Case{"RDMAP version 2", {.msn = 2, .rdmap_version = 2}},
      Case{"a Send in a tagged segment", {.msn = 2, .tagged = true}},
      Case{"a segment shorter than its header", {.msn = 2, .header_bytes = 17}},
      Case{"an empty ULPDU", {.header_bytes = 0}},
      Case{"a Terminate", {.msn = 1, .opcode = 7, .queue_number = 2}, "rc_terminates_received"});
  INFO(broken.what);
  Victim victim;
  RcParty bystander(victim.device);
  RcParty partner(victim.device);
  join(bystander, partner, llp::memory_stream_pair());
  victim.party.post_receives(3, 100);
  victim.feed(fpdu_bytes(Fpdu{.payload = text("good")}));
  CHECK(drain(victim.party.recv_cq).size() == 1);

  victim.feed(fpdu_bytes(broken.fpdu));
  CHECK(victim.party.qp.state() == QpState::error);
  const auto flushed = drain(victim.party.recv_cq);
  REQUIRE(flushed.size() == 2);
  CHECK(flushed[0].status == WcStatus::wr_flush_error);
  CHECK(flushed[0].wr_id == 1);
  CHECK(ending_of(*victim.wire) == Ending::in_order);  // after the Terminate
  CHECK(victim.device.counter(broken.counter) == 1);
  CHECK(same(victim.party.bytes(0, 4), text("good")));
  CHECK(same(victim.party.bytes(100, 100), std::vector<std::byte>(100)));

  partner.post_receives(1, 100);
  REQUIRE_FALSE(bystander.send(0, 50));
  victim.world.settle();
  CHECK(drain(partner.recv_cq).size() == 1);
}

TEST_CASE("A fault inside an RC message completes its receive with an error") {
  struct Case {
    const char* what;
    Fpdu fpdu;
  };
  const Case broken = GENERATE(
      Case{"a wrong CRC", {.offset = 4, .payload = text("x"), .crc_error = 1U << 31}},
      Case{"an offset with a gap", {.offset = 5}}, Case{"an offset that goes back", {.offset = 3}},
      Case{"the next message", {.msn = 2}},
      Case{"another opcode than it began with", {.offset = 4, .opcode = 5}});
  INFO(broken.what);
  Victim victim;
  victim.party.post_receives(2, 100);
  victim.feed(fpdu_bytes(Fpdu{.last = false, .payload = text("half")}));
  CHECK(drain(victim.party.recv_cq).empty());
  victim.feed(fpdu_bytes(broken.fpdu));
  const auto ended = drain(victim.party.recv_cq);
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].wr_id == 0);
  CHECK(ended[0].status == WcStatus::general_error);
  CHECK(ended[1].status == WcStatus::wr_flush_error);
  CHECK(victim.party.qp.state() == QpState::error);
}

TEST_CASE("A wrong CRC over TCP ends that RC connection with a Terminate") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device);
  auto [peer, mine] = raw_pair();
  party.post_receives(2, 100);
  party.impl().start(negotiated(stream_of(std::move(mine)), false));
  REQUIRE(peer.send(fpdu_bytes(Fpdu{.payload = text("good")})));
  CHECK(next(party.recv_cq).status == WcStatus::success);
  REQUIRE(peer.send(fpdu_bytes(Fpdu{.msn = 2, .payload = text("bad"), .crc_error = 0x80})));
  CHECK(next(party.recv_cq).status == WcStatus::wr_flush_error);
  CHECK(peer.receive(28).size() == 28);  // 22 bytes of ULPDU, a length, a CRC
  CHECK(peer.ending() == Ending::in_order);
  CHECK(device.counter("rc_crc_errors") == 1);
  CHECK(device.counter("rc_terminates_sent") == 1);
}

TEST_CASE("A corrupted byte anywhere in an RC stream never delivers a changed message") {
  for (uint64_t at = 0; at < 200; ++at) {
    World world;
    RcParty a(world.add_device(), {.memory = 512});
    RcParty b(world.add_device(), {.memory = 512});
    auto ends = llp::memory_stream_pair(1 << 16, 256);
    llp::StreamImpairment impairment;
    impairment.corrupt_at = at;
    ends.second =
        std::make_unique<llp::ImpairedStream>(std::move(ends.second), impairment, world.clock);
    join(a, b, std::move(ends));
    a.fill(pattern(512, at));
    b.post_receives(2, 256);
    REQUIRE_FALSE(a.send(0, 256));
    REQUIRE_FALSE(a.send(256, 10));
    world.settle();
    for (const WorkCompletion& received : drain(b.recv_cq)) {
      INFO(at);
      if (received.status != WcStatus::success) continue;
      const size_t from = received.wr_id * 256;
      REQUIRE(same(b.bytes(from, received.byte_count), a.bytes(from, received.byte_count)));
    }
    // A length that became longer waits for bytes that never come.
    const bool waits = b.qp.state() == QpState::rts && at <= 1;
    REQUIRE((b.qp.state() == QpState::error || waits));
  }
}

}  // namespace diwarp::test
