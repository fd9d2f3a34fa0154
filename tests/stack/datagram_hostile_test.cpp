// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// Datagrams of every kind besides Sends with a field that is wrong by itself, and of every kind
/// with fields that are wrong at random, to a queue pair at work.

namespace {

constexpr size_t kOpen =
    16 << 10;  // bytes of the memory that peers may use; the rest is not theirs

struct Target {
  explicit Target(const PartyOptions& options = {}) : party(device, options) {
    party.fill(pattern(party.memory.size(), 2));
    party.post_receives(16, 0);
  }

  uint64_t count(const char* counter) const { return device.counter(counter); }
  /// Whether a Write-Record still arrives.
  bool goes_on() {
    const Segment good{.incarnation = 99,
                       .msn = next_msn_++,
                       .payload = pattern(50, next_msn_),
                       .opcode = kWriteRecord,
                       .stag = region.rkey(),
                       .tagged_offset = region.base()};
    peer.send(party.address(), good);
    world.settle();
    const auto completions = drain(party.recv_cq);
    return completions.size() == 1 && completions[0].opcode == WcOpcode::recv_write_record &&
           same(party.bytes(0, 50), good.payload);
  }

  World world;
  Device& device = world.add_device();
  Party party;
  MemoryRegion region{party.pd, std::span(party.memory).first(kOpen),
                      Access::local_write | Access::remote_write | Access::remote_read};
  Peer peer{world};

 private:
  uint32_t next_msn_ = 0;
};

Segment record(const Target& target) {
  return {.msn = 5,
          .offset = 10,
          .payload = pattern(50, 1),
          .opcode = kWriteRecord,
          .stag = target.region.rkey(),
          .tagged_offset = target.region.base() + 10};
}

Segment request(const Target& target) {
  return {.msn = 6,
          .opcode = kReadRequest,
          .sink_stag = 9,
          .read_length = 20,
          .source_stag = target.region.rkey(),
          .source_offset = target.region.base()};
}

Segment response(const Target& target) {
  return {.payload = pattern(50, 1), .opcode = kReadResponse, .stag = target.region.rkey()};
}

struct Wrong {
  const char* what;
  const char* counter;
  Datagram datagram;
};

class WrongSegments {
 public:
  explicit WrongSegments(Segment good) : good_(std::move(good)) {}
  WrongSegments& with(const char* what, const char* counter,
                      const std::function<void(Segment&)>& change) {
    Segment segment = good_;
    change(segment);
    all_.push_back({what, counter, to_bytes(segment)});
    return *this;
  }
  /// The faults that any segment may have.
  WrongSegments& with_common() {
    return with("class 3", "drop_class", [](Segment& s) { s.datagram_class = 3; })
        .with("class RD", "drop_class", [](Segment& s) { s.datagram_class = 1; })
        .with("an unknown flag", "drop_flags", [](Segment& s) { s.flags = 4; })
        .with("a reserved bit of DDP", "drop_reserved", [](Segment& s) { s.ddp_reserved = 8; })
        .with("DDP version 3", "drop_ddp_version", [](Segment& s) { s.ddp_version = 3; })
        .with("RDMAP version 2", "drop_rdmap_version", [](Segment& s) { s.rdmap_version = 2; })
        .with("the other form", "drop_opcode", [](Segment& s) { s.wrong_form = true; })
        .with("a wrong CRC", "drop_crc", [](Segment& s) { s.crc_error = 0x8000; });
  }
  const std::vector<Wrong>& all() const { return all_; }

 private:
  Segment good_;
  std::vector<Wrong> all_;
};

std::vector<Wrong> wrong_records(const Target& target) {
  const uint32_t longest = 1U << 30;
  return WrongSegments(record(target))
      .with_common()
      .with("an RDMA Write", "drop_opcode", [](Segment& s) { s.opcode = kRdmaWrite; })
      .with("beyond its message", "drop_oversized", [](Segment& s) { s.message_length = 59; })
      .with("a message too long", "drop_oversized",
            [&](Segment& s) { s.message_length = longest + 1, s.last = false; })
      .with("L before the end", "drop_contradiction", [](Segment& s) { s.message_length = 61; })
      .with("no L at the end", "drop_contradiction", [](Segment& s) { s.last = false; })
      .with("a beginning below zero", "drop_bounds", [](Segment& s) { s.tagged_offset = 9; })
      .with("an end beyond 2^64", "drop_bounds", [](Segment& s) { s.tagged_offset = ~uint64_t{0}; })
      .all();
}

std::vector<Wrong> wrong_reads(const Target& target) {
  std::vector<Wrong> all =
      WrongSegments(request(target))
          .with_common()
          .with("queue 0", "drop_queue_number", [](Segment& s) { s.queue_number = ~0U; })
          .with("queue 2", "drop_queue_number", [](Segment& s) { s.queue_number = 1; })
          .with("immediate data", "drop_flags", [](Segment& s) { s.immediate = 1; })
          .with("a solicited flag", "drop_flags", [](Segment& s) { s.solicited = true; })
          .with("a payload", "drop_oversized", [](Segment& s) { s.payload.resize(1); })
          .with("MO", "drop_oversized", [](Segment& s) { s.offset = 1; })
          .with("no L", "drop_contradiction", [](Segment& s) { s.last = false; })
          .with("too much", "drop_oversized", [](Segment& s) { s.read_length = 262145; })
          .with("a sink beyond 2^64", "drop_bounds",
                [](Segment& s) { s.sink_offset = ~uint64_t{0}; })
          .all();
  const auto responses =
      WrongSegments(response(target))
          .with_common()
          .with("immediate data", "drop_flags", [](Segment& s) { s.immediate = 1; })
          .with("a solicited flag", "drop_flags", [](Segment& s) { s.solicited = true; })
          .with("an end beyond 2^64", "drop_bounds",
                [](Segment& s) { s.tagged_offset = ~uint64_t{0}; })
          .with("a region's STag", "drop_response", [](Segment&) {})
          .all();
  all.insert(all.end(), responses.begin(), responses.end());
  return all;
}

std::vector<Wrong> wrong_control() {
  std::vector<Wrong> all;
  const auto add = [&](const char* what, const char* counter, Control control) {
    all.push_back({what, counter, to_bytes(control)});
  };
  const auto cookie = pattern(24, 3);  // with its nonce
  for (const uint8_t type : {uint8_t{0}, uint8_t{4}, uint8_t{255}})
    add("an unknown type", "drop_control", {.type = type, .content = cookie});
  for (const uint8_t type : {kChallenge, kEcho}) {
    add("a cookie that nobody waits for", "drop_control", {.type = type, .content = cookie});
    add("half a cookie", "drop_truncated", {.type = type, .content = pattern(16, 3)});
    add("too long a cookie", "drop_control", {.type = type, .content = pattern(25, 3)});
    add("a flag", "drop_flags", {.type = type, .content = cookie, .flags = 1});
    add("a reserved byte", "drop_reserved", {.type = type, .content = cookie, .reserved = 1});
    add("a reserved bit", "drop_reserved",
        {.type = type, .content = cookie, .prefix_reserved = 0x8000});
    add("a wrong CRC", "drop_crc", {.type = type, .content = cookie, .crc_error = 1});
  }
  add("nothing", "drop_truncated", {.type = kError});
  add("a reserved bit", "drop_reserved", {.type = kError, .content = pattern(4, 3)});
  const auto error = to_bytes(ErrorContent{});
  for (const uint8_t bits : {uint8_t{0x40}, uint8_t{0x80}, uint8_t{0xC0}, uint8_t{0xE0}}) {
    std::vector<std::byte> content = error;
    content[2] = std::byte{bits};
    add("headers announced", bits < 0xC0 ? "drop_control" : "drop_truncated",
        {.type = kError, .content = content});
  }
  std::vector<std::byte> more = error;
  more.push_back(std::byte{0});
  add("more than it says", "drop_control", {.type = kError, .content = more});
  return all;
}

void check_all(Target& target, const std::vector<Wrong>& all) {
  for (const Wrong& wrong : all) {
    CAPTURE(wrong.what, wrong.counter);
    const uint64_t counted = target.count(wrong.counter);
    const uint64_t dropped = drops(target.device);
    const std::vector<std::byte> before = target.party.memory;
    target.peer.send(target.party.address(), wrong.datagram);
    target.world.settle();
    CHECK(target.count(wrong.counter) == counted + 1);
    CHECK(drops(target.device) == dropped + 1);
    CHECK(target.peer.receive().empty());
    CHECK(drain(target.party.recv_cq).empty());
    CHECK(target.party.memory == before);
    CHECK(target.goes_on());
  }
}

/// The datagram with a few bits changed and, mostly, the CRC that goes with them.
Datagram mutated(Datagram datagram, Random& random) {
  datagram.resize(datagram.size() - 4);
  for (uint64_t change = random.below(4); change-- > 0;)
    datagram[random.below(std::min<uint64_t>(datagram.size(), 64))] ^= std::byte{1}
                                                                       << random.below(8);
  if (random.below(8) == 0) datagram.resize(random.below(datagram.size() + 1));
  append_crc(datagram, random.below(8) == 0 ? 1 : 0);
  return datagram;
}

}  // namespace

TEST_CASE("a malformed Write-Record is dropped under its own reason, and not answered") {
  Target target;
  check_all(target, wrong_records(target));
}

TEST_CASE(
    "a malformed Read Request or Response is dropped under its own reason, and not answered") {
  Target target;
  check_all(target, wrong_reads(target));
}

TEST_CASE("a malformed control message is dropped under its own reason, and not answered") {
  Target target;
  check_all(target, wrong_control());
}

TEST_CASE("mutated datagrams of every kind touch no memory but what is open, and no more work") {
  Target target;
  const std::vector<std::byte> before = target.party.memory;
  const Segment send{.last = false, .payload = pattern(50, 1)};
  const Segment invalidate{.q_key = 1, .payload = pattern(50, 1), .opcode = kSendInvalidate};
  const std::vector<Datagram> kinds{
      to_bytes(send),
      to_bytes(invalidate),
      to_bytes(record(target)),
      to_bytes(request(target)),
      to_bytes(response(target)),
      to_bytes(Control{.type = kChallenge, .content = pattern(24, 3)}),
      to_bytes(Control{.type = kEcho, .content = pattern(24, 3)}),
      to_bytes(error_about(record(target), 1, 1, 0)),
      to_bytes(error_about(request(target), 0, 1, 0))};
  Random random(7);
  for (int i = 0; i < 200'000; ++i) {
    target.peer.send(target.party.address(), mutated(kinds[random.below(kinds.size())], random));
    if (i % 16 != 0) continue;
    target.world.settle();
    target.peer.receive();
    drain(target.party.recv_cq);
  }
  target.world.advance(1s);  // unfinished messages are over by then
  drain(target.party.recv_cq);
  CHECK(target.count("rx_datagrams") == 200'000);
  CHECK(same(std::span(target.party.memory).subspan(kOpen), std::span(before).subspan(kOpen)));
  CHECK(target.party.qp.query().posted_receives <= 16);
  CHECK(target.region.valid());
  target.peer.receive();
  CHECK(target.goes_on());
}

TEST_CASE("a segment that names memory needs no Q_Key, since its STag gives the right") {
  Target target({.datagram = {.q_key = 0x80000001}});
  CHECK(target.goes_on());
  target.peer.send(target.party.address(), request(target));
  target.world.settle();
  const auto answers = target.peer.receive();
  REQUIRE(answers.size() == 1);
  CHECK(read_segment(answers[0]).opcode == kReadResponse);
  CHECK(drops(target.device) == 0);
}

TEST_CASE("a Send with Invalidate has no Q_Key, and finds no queue pair that wants one") {
  Target target({.datagram = {.q_key = 1}});
  const Segment invalidate{.q_key = target.region.rkey(), .payload = {}, .opcode = kSendInvalidate};
  target.peer.send(target.party.address(), invalidate);
  target.world.settle();
  CHECK(target.count("drop_q_key") == 1);
  CHECK(drain(target.party.recv_cq).empty());
}

TEST_CASE("control messages that find no room are left out, and counted as that") {
  // So slow that hardly any of them goes out.
  Target target(
      {.datagram = {.max_rate = 1, .stag_misses_per_source = 1000, .error_rate = 1'000'000}});
  Segment wrong = record(target);
  wrong.stag ^= 1U << 20;
  for (uint32_t msn = 0; msn < 1000; ++msn) {
    wrong.msn = msn;
    target.peer.send(target.party.address(), wrong);
    target.world.settle();
  }
  CHECK(target.count("errors_sent") < 200);
  CHECK(target.count("errors_sent") + target.count("errors_suppressed") == 1000);
  CHECK(target.peer.receive().size() < 200);
  target.world.advance(24h);
  CHECK(target.goes_on());
}
