// SPDX-License-Identifier: Apache-2.0
#include "llp/forwarding.h"
#include "stack/rc_hostile.h"

/// In which order messages leave, take effect, and are answered (RFC 5040 section 5.5, RFC 7306
/// section 7), seen from the bare other end of a stream.
namespace diwarp::test {

namespace {

/// Opcode and what follows the DDP header, of each FPDU that came.
struct Came {
  unsigned opcode;
  std::vector<std::byte> body;
};
std::vector<Came> messages_in(std::span<const std::byte> stream) {
  std::vector<Came> messages;
  while (stream.size() >= 2) {
    const size_t ulpdu = number(stream.first(2));
    const size_t whole = (2 + ulpdu + 3) / 4 * 4 + 4;
    REQUIRE(stream.size() >= whole);
    const auto body = stream.subspan(2, ulpdu);
    const bool tagged = (body[0] & std::byte{0x80}) != std::byte{0};
    const auto rest = body.subspan(tagged ? 14 : 18);
    messages.push_back({std::to_integer<unsigned>(body[1]) & 15, {rest.begin(), rest.end()}});
    stream = stream.subspan(whole);
  }
  return messages;
}

std::vector<unsigned> opcodes_in(std::span<const std::byte> stream) {
  std::vector<unsigned> opcodes;
  for (const Came& came : messages_in(stream)) opcodes.push_back(came.opcode);
  return opcodes;
}

std::vector<std::byte> bytes_of(uint64_t word) {
  std::vector<std::byte> bytes(sizeof word);
  std::memcpy(bytes.data(), &word, sizeof word);
  return bytes;
}

/// A queue pair whose peer is the bare other end of its stream.
struct Bare {
  explicit Bare(bool initiator, bool crc = true, StreamOptions options = {})
      : party(world.add_device(), {.access = kOpen, .stream = options}) {
    auto ends = llp::memory_stream_pair(1 << 20, 1460);
    peer = std::move(ends.first);
    party.impl().start(negotiated(std::move(ends.second), initiator, {.crc = crc}));
  }

  void feed(const std::vector<Wire>& wires) {
    std::vector<std::byte> all;
    for (const Wire& wire : wires) {
      const std::vector<std::byte> fpdu = framed(to_ulpdu(wire));
      all.insert(all.end(), fpdu.begin(), fpdu.end());
    }
    write(*peer, all);
    world.settle();
  }
  Wire write_word(uint64_t word) const {
    Wire wire = write_of(party.mr->rkey(), party.mr->base(), 8);
    wire.body = bytes_of(word);
    return wire;
  }
  /// Adds 1 to the word at the front of the memory.
  Wire add_one(uint32_t msn) const {
    Wire wire = atomic_of(party.mr->rkey(), party.mr->base());
    wire.msn = msn;
    return wire;
  }
  Wire read_word(uint32_t msn) const { return read_of(party.mr->rkey(), party.mr->base(), 8, msn); }
  uint64_t word() const {
    uint64_t word = 0;
    std::memcpy(&word, party.memory.data(), sizeof word);
    return word;
  }

  World world;
  RcParty party;
  StreamEnd peer;
};

/// The value that the atomic operation found.
uint64_t found_by(const Came& response) {
  CHECK(response.opcode == 11);
  REQUIRE(response.body.size() == 12);
  return number(std::span(response.body).subspan(4));
}

/// A stream over a path whose segments change.
class ChangingPath : public llp::ForwardingStream {
 public:
  ChangingPath(StreamEnd inner, const size_t& segment)
      : ForwardingStream(std::move(inner)), segment_(segment) {}
  size_t maximum_segment() const override { return segment_; }

 private:
  const size_t& segment_;
};

}  // namespace

TEST_CASE("Messages of every kind go out in the order in which they were posted") {
  Bare bare(false);  // a responder, whose messages wait for the first FPDU and leave together
  RcParty& party = bare.party;
  party.post_receives(1, 8);
  const auto immediate = [&] {
    REQUIRE_FALSE(party.qp.post_send({.opcode = WrOpcode::immediate, .immediate = 1}));
  };
  REQUIRE_FALSE(party.send(0, 8));
  REQUIRE_FALSE(party.post(WrOpcode::rdma_write, 0, 8, {1, 0}));
  REQUIRE_FALSE(party.post(WrOpcode::rdma_read, 0, 8, {1, 0}));
  immediate();
  REQUIRE_FALSE(party.post(WrOpcode::fetch_add, 0, 8, {1, 0}));
  REQUIRE_FALSE(party.post(WrOpcode::rdma_write, 0, 8, {1, 0}));
  REQUIRE_FALSE(party.send(0, 8));
  bare.feed({Wire{}});
  CHECK(opcodes_in(read(*bare.peer)) == std::vector<unsigned>{3, 0, 1, 8, 10, 0, 3});
}

TEST_CASE("The bytes of a Write before a Send are there when the Send is delivered") {
  const bool crc = GENERATE(true, false);
  const size_t length = GENERATE(size_t{8}, size_t{20000});
  Bare bare(false, crc);
  bare.party.post_receives(1, 0);
  Wire write = write_of(bare.party.mr->rkey(), bare.party.mr->base(), length);
  bare.feed({write, Wire{}});
  CHECK(statuses(bare.party.recv_cq) == Statuses{WcStatus::success});
  CHECK(same(bare.party.bytes(0, length), write.body));
}

TEST_CASE("An atomic operation sees the Writes and Sends before it, and a Read after it sees it") {
  Bare bare(false);
  REQUIRE_FALSE(bare.party.post_recv(0, 0, 8));
  bare.feed({bare.write_word(5), bare.add_one(1), bare.read_word(2), bare.add_one(3)});
  std::vector<Came> responses = messages_in(read(*bare.peer));
  REQUIRE(responses.size() == 3);
  CHECK(found_by(responses[0]) == 5);
  CHECK(responses[1].opcode == 2);
  CHECK(responses[1].body == bytes_of(6));
  CHECK(found_by(responses[2]) == 6);
  CHECK(bare.word() == 7);
  bare.feed({Wire{.body = bytes_of(40)}, bare.add_one(4)});
  responses = messages_in(read(*bare.peer));
  REQUIRE(responses.size() == 1);
  CHECK(found_by(responses[0]) == 40);
  CHECK(bare.word() == 41);
}

TEST_CASE("Nothing after a Send or Immediate Data is answered before these are delivered") {
  const uint8_t opcode = GENERATE(uint8_t{3}, uint8_t{8});
  Bare bare(false);
  bare.feed({Wire{.opcode = opcode, .body = bytes_of(1)}, bare.add_one(1), bare.read_word(2)});
  CHECK(read(*bare.peer).empty());
  CHECK(bare.word() == 0);
  REQUIRE_FALSE(bare.party.post_recv(0, 100, 8));
  bare.world.settle();
  CHECK(statuses(bare.party.recv_cq) == Statuses{WcStatus::success});
  CHECK(opcodes_in(read(*bare.peer)) == std::vector<unsigned>{11, 2});
  CHECK(bare.word() == 1);
}

TEST_CASE("Requests complete in the order in which they were posted, Reads only when answered") {
  Bare bare(true);
  RcParty& party = bare.party;
  REQUIRE_FALSE(party.post(WrOpcode::rdma_read, 0, 8, {1, 0}, 1));
  REQUIRE_FALSE(party.send(0, 8, 2));
  REQUIRE_FALSE(party.post(WrOpcode::rdma_write, 0, 8, {1, 0}, 3));
  bare.world.settle();
  CHECK(opcodes_in(read(*bare.peer)) == std::vector<unsigned>{1, 3, 0});
  CHECK(drain(party.send_cq).empty());
  Wire response = bare.write_word(7);
  response.opcode = 2;
  bare.feed({response});
  const auto done = drain(party.send_cq);
  REQUIRE(done.size() == 3);
  for (uint64_t i = 0; i < 3; ++i) CHECK(done[i].wr_id == i + 1);
  CHECK(bare.word() == 7);
}

TEST_CASE("A disconnect begins when nothing may leave yet, and ends when all has left") {
  Bare bare(false);  // a responder, whose messages wait for the first FPDU
  RcParty& party = bare.party;
  party.post_receives(1, 8);
  REQUIRE_FALSE(party.send(0, 8));
  REQUIRE_FALSE(party.send(0, 8));
  software(bare.world.devices[0]).engine().exclusively([&] { party.impl().begin_disconnect(); });
  bare.world.settle();
  CHECK(read(*bare.peer).empty());
  CHECK(ending_of(*bare.peer) == Ending::none);
  bare.feed({Wire{}});
  CHECK(opcodes_in(read(*bare.peer)) == std::vector<unsigned>{3, 3});
  CHECK(ending_of(*bare.peer) == Ending::in_order);
  CHECK(statuses(party.send_cq) == Statuses(2, WcStatus::success));
}

TEST_CASE("Of what follows an FPDU in error nothing is placed or delivered") {
  const bool wrong_crc = GENERATE(true, false);
  Bare bare(false);
  bare.party.post_receives(3, 8);
  std::vector<std::byte> all;
  const auto append_fpdu = [&](const Wire& wire, uint32_t crc_error = 0) {
    const std::vector<std::byte> fpdu = framed(to_ulpdu(wire), crc_error);
    all.insert(all.end(), fpdu.begin(), fpdu.end());
  };
  append_fpdu(Wire{});
  append_fpdu(Wire{.msn = wrong_crc ? 2U : 9U}, wrong_crc ? 1 : 0);
  append_fpdu(Wire{.msn = 2});
  append_fpdu(Wire{.msn = 3});
  append_fpdu(bare.write_word(5));
  write(*bare.peer, all);
  bare.world.settle();
  CHECK(statuses(bare.party.recv_cq) ==
        Statuses{WcStatus::success, WcStatus::wr_flush_error, WcStatus::wr_flush_error});
  CHECK(bare.word() == 0);
  CHECK(terminate_in(read(*bare.peer)).code == (wrong_crc ? "2/0/2" : "1/2/3"));
}

TEST_CASE("FPDUs follow TCP's segment size when it changes") {
  size_t segment = 1460;
  World world;
  RcParty party(world.add_device());
  auto ends = llp::memory_stream_pair(1 << 20, 1460);
  auto stream = std::make_unique<ChangingPath>(std::move(ends.second), segment);
  party.impl().start(negotiated(std::move(stream), true));
  // The length of a long Send's first ULPDU, which fills its segment.
  const auto first_ulpdu = [&] {
    REQUIRE_FALSE(party.send(0, 8000));
    world.settle();
    return number(first_of(read(*ends.first), 2));
  };
  CHECK(first_ulpdu() == 1454);
  segment = 536;
  world.advance(200ms);
  CHECK(first_ulpdu() == 530);
  segment = 8948;
  world.advance(200ms);
  CHECK(first_ulpdu() == 8018);  // the whole Send
}

}  // namespace diwarp::test
