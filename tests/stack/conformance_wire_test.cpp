// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_hostile.h"

/// The bytes that this side sends, field by field, as a plain socket sees them (RFC 5040, 5041,
/// 5044, 7306).
namespace diwarp::test {

namespace {

/// A ULPDU that came, taken apart.
struct Seen {
  bool tagged = false;
  bool last = false;
  uint64_t opcode = 0;
  uint64_t stag = 0;    // tagged
  uint64_t offset = 0;  // tagged
  uint64_t word = 0;    // untagged
  uint64_t queue = 0;
  uint64_t msn = 0;
  uint64_t mo = 0;
  std::vector<std::byte> body{};
};

/// The next FPDU's segment. Its padding is zero, its CRC right, its versions are 1 and its reserved
/// bits 0.
Seen next_segment(RawStream& peer) {
  std::vector<std::byte> bytes = peer.receive(2);
  REQUIRE(bytes.size() == 2);
  const size_t length = number(bytes);
  const size_t whole = (2 + length + 3) / 4 * 4 + 4;
  const auto rest = peer.receive(whole - 2);
  REQUIRE(rest.size() == whole - 2);
  const std::vector<std::byte> ulpdu(rest.begin(), rest.begin() + static_cast<ptrdiff_t>(length));
  bytes.insert(bytes.end(), rest.begin(), rest.end());
  CHECK(bytes == framed(ulpdu));

  const uint64_t control = number(first_of(ulpdu, 2));
  CHECK((control >> 8 & 3) == 1);
  CHECK((control >> 10 & 15) == 0);
  CHECK((control >> 6 & 3) == 1);
  CHECK((control >> 4 & 3) == 0);
  Seen seen{
      .tagged = (control & 0x8000) != 0, .last = (control & 0x4000) != 0, .opcode = control & 15};
  const std::span<const std::byte> all(ulpdu);
  const size_t header = seen.tagged ? 14 : 18;
  REQUIRE(all.size() >= header);
  if (seen.tagged) {
    seen.stag = number(all.subspan(2, 4));
    seen.offset = number(all.subspan(6, 8));
  } else {
    seen.word = number(all.subspan(2, 4));
    seen.queue = number(all.subspan(6, 4));
    seen.msn = number(all.subspan(10, 4));
    seen.mo = number(all.subspan(14, 4));
  }
  seen.body.assign(all.begin() + static_cast<ptrdiff_t>(header), all.end());
  return seen;
}

/// A queue pair that may speak: its peer has sent a first FPDU.
struct Speaker : Fortress {
  Speaker() {
    face(2, 100);
    send(Wire{});
    CHECK(next(victim->recv_cq).status == WcStatus::success);
  }
  void answer(const Wire& wire) { send(wire); }
  RemoteMemory place(uint64_t offset) const { return {0x55667788, offset}; }
};

/// Where a Read Request wants its bytes.
struct Sink {
  uint32_t stag;
  uint64_t offset;
};
Sink sink_of(const Seen& request) {
  const std::span<const std::byte> body(request.body);
  REQUIRE(body.size() == 28);
  return {static_cast<uint32_t>(number(body.first(4))), number(body.subspan(4, 8))};
}

constexpr size_t kLong = 200000;

/// The same with enough memory for messages of many segments.
struct LongSpeaker : Speaker {
  LongSpeaker() : contents(pattern(kLong, 3)), region(victim->pd, std::span(contents), kOpen) {}
  Sge all() const { return region.sge(0, kLong); }

  std::vector<std::byte> contents;
  MemoryRegion region;
};

}  // namespace

TEST_CASE("A long Send goes out in segments of one MSN, without gaps, the last one marked") {
  LongSpeaker speaker;
  const Sge sge = speaker.all();
  for (uint64_t msn = 1; msn <= 2; ++msn) {
    REQUIRE_FALSE(speaker.victim->qp.post_send({.wr_id = msn, .sges = {&sge, 1}}));
    std::vector<std::byte> came;
    Seen seen;
    do {
      seen = next_segment(*speaker.peer);
      CHECK_FALSE(seen.tagged);
      CHECK(seen.opcode == 3);
      CHECK(seen.word == 0);
      CHECK(seen.queue == 0);
      CHECK(seen.msn == msn);
      CHECK(seen.mo == came.size());
      came.insert(came.end(), seen.body.begin(), seen.body.end());
      CHECK(seen.last == (came.size() == kLong));
    } while (!seen.last && came.size() < kLong);
    CHECK(came == speaker.contents);
  }
}

TEST_CASE("A long Write goes out in segments with the STag and each its own offset") {
  LongSpeaker speaker;
  const Sge sge = speaker.all();
  REQUIRE_FALSE(speaker.victim->qp.post_send({.sges = {&sge, 1},
                                              .opcode = WrOpcode::rdma_write,
                                              .remote = speaker.place(0x123456789ABCDE00)}));
  std::vector<std::byte> came;
  Seen seen;
  do {
    seen = next_segment(*speaker.peer);
    CHECK(seen.tagged);
    CHECK(seen.opcode == 0);
    CHECK(seen.stag == 0x55667788);
    CHECK(seen.offset == 0x123456789ABCDE00 + came.size());
    came.insert(came.end(), seen.body.begin(), seen.body.end());
    CHECK(seen.last == (came.size() == kLong));
  } while (!seen.last && came.size() < kLong);
  CHECK(came == speaker.contents);
}

TEST_CASE("Read Requests go out on queue 1 with MSNs of their own, naming sink and source") {
  Speaker speaker;
  RcParty& party = *speaker.victim;
  for (uint64_t msn = 1; msn <= 3; ++msn) {
    REQUIRE_FALSE(party.send(0, 4));
    REQUIRE_FALSE(party.post(WrOpcode::rdma_read, 100 * msn, 50, speaker.place(7000 + msn)));
    CHECK(next_segment(*speaker.peer).msn == msn);
    const Seen seen = next_segment(*speaker.peer);
    CHECK(seen.opcode == 1);
    CHECK(seen.last);
    CHECK(seen.word == 0);
    CHECK(seen.queue == 1);
    CHECK(seen.msn == msn);
    CHECK(seen.mo == 0);
    REQUIRE(seen.body.size() == 28);
    const std::span<const std::byte> body(seen.body);
    const auto sink_stag = static_cast<uint32_t>(number(body.first(4)));
    const uint64_t sink_offset = number(body.subspan(4, 8));
    CHECK(number(body.subspan(12, 4)) == 50);
    CHECK(number(body.subspan(16, 4)) == 0x55667788);
    CHECK(number(body.subspan(20, 8)) == 7000 + msn);
    Wire response = write_of(sink_stag, sink_offset, 50);
    response.opcode = 2;
    speaker.answer(response);
    CHECK(next(party.send_cq).opcode == WcOpcode::send);
    CHECK(next(party.send_cq).status == WcStatus::success);
    CHECK(same(party.bytes(100 * msn, 50), std::vector<std::byte>(50, std::byte{0xEE})));
  }
}

TEST_CASE("A Read Response of another sink, place or length is refused and not written") {
  struct WrongResponse {
    const char* what;
    uint32_t stag;
    uint64_t offset;
    size_t length;
    bool last;
    const char* code;
  };
  const WrongResponse responses[] = {{"STag", 1, 0, 50, true, "1/1/0"},
                                     {"offset before", 0, UINT64_MAX, 50, true, "1/1/1"},
                                     {"offset behind", 0, 1, 50, true, "1/1/1"},
                                     {"too long", 0, 0, 51, true, "1/1/1"},
                                     {"too short", 0, 0, 49, true, "1/1/1"},
                                     {"too long and without end", 0, 0, 51, false, "1/1/1"}};
  for (const WrongResponse& wrong : responses) {
    CAPTURE(wrong.what);
    Speaker speaker;
    RcParty& party = *speaker.victim;
    REQUIRE_FALSE(party.post(WrOpcode::rdma_read, 1000, 50, speaker.place(0)));
    const Seen seen = next_segment(*speaker.peer);
    const std::span<const std::byte> body(seen.body);
    Wire response = write_of(static_cast<uint32_t>(number(body.first(4))) ^ wrong.stag,
                             number(body.subspan(4, 8)) + wrong.offset, wrong.length);
    response.opcode = 2;
    response.last = wrong.last;
    speaker.answer(response);
    CHECK(speaker.seen_terminate().code == wrong.code);
    CHECK(next(party.send_cq).status != WcStatus::success);
    speaker.check_unharmed();
  }
}

TEST_CASE("Segments of a Read Response may be empty, the last one, too") {
  struct Split {
    const char* what;
    std::vector<size_t> lengths;
  };
  const Split splits[] = {{"the last one", {50, 0}},
                          {"the first one", {0, 50}},
                          {"one between", {20, 0, 30}},
                          {"several at the end", {20, 30, 0, 0}}};
  for (const Split& split : splits) {
    CAPTURE(split.what);
    Speaker speaker;
    RcParty& party = *speaker.victim;
    REQUIRE_FALSE(party.post(WrOpcode::rdma_read, 1000, 50, speaker.place(0)));
    const Sink sink = sink_of(next_segment(*speaker.peer));
    uint64_t offset = 0;
    for (size_t i = 0; i < split.lengths.size(); ++i) {
      // The memory that an empty segment names is not looked at (RFC 5041 sections 5.2 and 7.1).
      const bool empty = split.lengths[i] == 0;
      Wire response = empty ? write_of(sink.stag ^ 1, 7, 0)
                            : write_of(sink.stag, sink.offset + offset, split.lengths[i]);
      response.opcode = 2;
      response.last = i + 1 == split.lengths.size();
      speaker.answer(response);
      offset += split.lengths[i];
    }
    CHECK(next(party.send_cq).status == WcStatus::success);
    CHECK(same(party.bytes(1000, 50), std::vector<std::byte>(50, std::byte{0xEE})));
    CHECK(party.qp.state() == QpState::rts);
  }
}

TEST_CASE("A Read Response of all bytes but no end takes none more, and completes no Read") {
  Speaker speaker;
  RcParty& party = *speaker.victim;
  REQUIRE_FALSE(party.post(WrOpcode::rdma_read, 1000, 50, speaker.place(0)));
  const Sink sink = sink_of(next_segment(*speaker.peer));
  Wire response = write_of(sink.stag, sink.offset, 50);
  response.opcode = 2;
  response.last = false;
  speaker.answer(response);
  Wire more = write_of(sink.stag, sink.offset + 50, 1);
  more.opcode = 2;
  speaker.answer(more);
  CHECK(speaker.seen_terminate().code == "1/1/1");
  CHECK(next(party.send_cq).status == WcStatus::bad_response_error);
  const std::vector<std::byte> before = Fortress::before();
  CHECK(same(party.bytes(1050, 50), std::span(before).subspan(1050, 50)));
  speaker.check_bystanders();
}

TEST_CASE("A Read Response is no answer to an atomic operation") {
  Speaker speaker;
  RcParty& party = *speaker.victim;
  REQUIRE_FALSE(party.post(WrOpcode::fetch_add, 1000, 8, speaker.place(0)));
  next_segment(*speaker.peer);
  const RemoteMemory sink = party.remote(1000);
  Wire response = write_of(sink.stag, sink.offset, 8);
  response.opcode = 2;
  speaker.answer(response);
  CHECK(speaker.seen_terminate().code == "1/1/0");
  CHECK(next(party.send_cq).status != WcStatus::success);
  speaker.check_unharmed();
}

TEST_CASE("An Atomic Response for another request, or for a Read, is refused and not written") {
  const bool reading = GENERATE(false, true);
  Speaker speaker;
  RcParty& party = *speaker.victim;
  const WrOpcode operation = reading ? WrOpcode::rdma_read : WrOpcode::fetch_add;
  REQUIRE_FALSE(party.post(operation, 1000, 8, speaker.place(0)));
  const Seen seen = next_segment(*speaker.peer);
  const uint64_t id = reading ? 0 : number(std::span<const std::byte>(seen.body).subspan(4, 4)) + 1;
  std::vector<std::byte> body;
  append(body, id & 0xffffffff, 4);
  append(body, 0x1122334455667788, 8);
  speaker.answer({.opcode = 11, .queue = 3, .body = body});
  CHECK(speaker.seen_terminate().code == (reading ? "1/2/2" : "0/2/255"));
  CHECK(next(party.send_cq).status != WcStatus::success);
  speaker.check_unharmed();
}

TEST_CASE("No more Reads and atomic operations go out than the peer answers at a time") {
  Speaker speaker;
  RcParty& party = *speaker.victim;
  const uint16_t limit = party.qp.query().ord;
  REQUIRE(limit > 1);
  for (unsigned i = 0; i < limit + 2U; ++i) {
    const WrOpcode opcode = i == 1 ? WrOpcode::fetch_add : WrOpcode::rdma_read;
    REQUIRE_FALSE(party.post(opcode, 0, 8, speaker.place(i)));
  }
  REQUIRE_FALSE(party.send(0, 4));  // after them all
  std::vector<Seen> asked;
  for (unsigned i = 0; i < limit; ++i) asked.push_back(next_segment(*speaker.peer));
  CHECK(asked[0].opcode == 1);
  CHECK(asked[1].opcode == 10);
  pollfd watched{speaker.peer->descriptor(), POLLIN, 0};
  CHECK(::poll(&watched, 1, 20) == 0);  // nothing may come, however long one waits

  const std::span<const std::byte> read(asked[0].body);
  Wire response =
      write_of(static_cast<uint32_t>(number(read.first(4))), number(read.subspan(4, 8)), 8);
  response.opcode = 2;
  speaker.answer(response);
  CHECK(next_segment(*speaker.peer).msn == limit + 1U);
  CHECK(::poll(&watched, 1, 20) == 0);
  Wire value{.opcode = 11, .queue = 3, .body = std::vector<std::byte>(12)};
  std::copy_n(asked[1].body.begin() + 4, 4, value.body.begin());
  speaker.answer(value);
  CHECK(next_segment(*speaker.peer).msn == limit + 2U);
  CHECK(next_segment(*speaker.peer).opcode == 3);
}

TEST_CASE("Read Responses go out in the order of their Requests, to the sinks that these named") {
  Fortress fortress;
  fortress.face();
  const RcParty& party = *fortress.victim;
  const uint32_t lengths[] = {3000, 0, 5, 4096};
  uint32_t msn = 0;
  for (const uint32_t length : lengths) {
    Wire request = read_of(fortress.stag(), fortress.base(), length, ++msn);
    request.body[3] = static_cast<std::byte>(msn);  // the sink STag
    fortress.send(request);
  }
  for (uint32_t answered = 1; answered <= msn; ++answered) {
    const uint32_t length = lengths[answered - 1];
    std::vector<std::byte> came;
    Seen seen;
    do {
      seen = next_segment(*fortress.peer);
      CHECK(seen.tagged);
      CHECK(seen.opcode == 2);
      CHECK(seen.stag == (0x11223300 | answered));
      CHECK(seen.offset == 0x1000 + came.size());
      came.insert(came.end(), seen.body.begin(), seen.body.end());
      CHECK(seen.last == (came.size() == length));
    } while (!seen.last && came.size() < length);
    CHECK(came == first_of(party.memory, length));
  }
}

TEST_CASE("An Atomic Response goes out on queue 3 with the Request's identifier") {
  Fortress fortress;
  fortress.face();
  for (uint32_t msn = 1; msn <= 3; ++msn) {
    Wire request = atomic_of(fortress.stag(), fortress.base() + 8);
    request.msn = msn;
    request.body[7] = static_cast<std::byte>(msn);  // the identifier
    uint64_t before = 0;
    std::memcpy(&before, &fortress.victim->memory[8], sizeof before);
    fortress.send(request);
    const Seen seen = next_segment(*fortress.peer);
    CHECK(seen.opcode == 11);
    CHECK(seen.last);
    CHECK(seen.queue == 3);
    CHECK(seen.msn == msn);
    CHECK(seen.mo == 0);
    REQUIRE(seen.body.size() == 12);
    CHECK(number(first_of(seen.body, 4)) == msn);
    CHECK(number(std::span(seen.body).subspan(4)) == before);
    uint64_t after = 0;
    std::memcpy(&after, &fortress.victim->memory[8], sizeof after);
    CHECK(after == before + 1);
  }
}

TEST_CASE("Immediate Data go out on queue 0 with the next MSN and eight octets") {
  Speaker speaker;
  RcParty& party = *speaker.victim;
  REQUIRE_FALSE(party.send(0, 4));
  REQUIRE_FALSE(
      party.qp.post_send({.opcode = WrOpcode::immediate, .immediate = 0x0123456789ABCDEF}));
  REQUIRE_FALSE(party.qp.post_send({.flags = SendFlags::signaled | SendFlags::solicited,
                                    .opcode = WrOpcode::immediate,
                                    .immediate = 1}));
  CHECK(next_segment(*speaker.peer).opcode == 3);
  const Seen plain = next_segment(*speaker.peer);
  CHECK(plain.opcode == 8);
  CHECK(plain.queue == 0);
  CHECK(plain.msn == 2);
  CHECK(plain.mo == 0);
  CHECK(plain.last);
  CHECK(plain.body == hex("0123456789abcdef"));
  const Seen solicited = next_segment(*speaker.peer);
  CHECK(solicited.opcode == 9);
  CHECK(solicited.msn == 3);
  CHECK(solicited.body == hex("0000000000000001"));
}

TEST_CASE("Sends go out with the opcode of their kind and the STag to invalidate") {
  Speaker speaker;
  RcParty& party = *speaker.victim;
  struct Kind {
    bool solicited;
    bool invalidates;
    uint64_t opcode;
  };
  const Kind kinds[] = {{false, false, 3}, {false, true, 4}, {true, false, 5}, {true, true, 6}};
  for (const Kind& kind : kinds) {
    const Sge sge = party.mr->sge(0, 4);
    REQUIRE_FALSE(party.qp.post_send(
        {.sges = {&sge, 1},
         .flags = kind.solicited ? SendFlags::signaled | SendFlags::solicited : SendFlags::signaled,
         .opcode = kind.invalidates ? WrOpcode::send_with_invalidate : WrOpcode::send,
         .invalidate_stag = 0x0A0B0C0D}));
    const Seen seen = next_segment(*speaker.peer);
    CHECK(seen.opcode == kind.opcode);
    CHECK(seen.word == (kind.invalidates ? 0x0A0B0C0D : 0));
  }
}

}  // namespace diwarp::test
