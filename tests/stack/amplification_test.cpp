// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// The bytes that a source that has not shown where it is can make a queue pair send: never more
/// bytes than it sends, for any kind of message, so that nobody gains by naming somebody else as
/// the source.

namespace {

struct Victim {
  explicit Victim(QpType type = QpType::ud)
      : party(device,
              {.memory = 1 << 20, .datagram = {.error_rate = 1'000'000'000}, .type = type}) {
    party.post_receives(4, 1000);
    party.fill(pattern(party.memory.size(), 1));
  }

  /// Bytes that come back for a datagram, at once or within ten seconds.
  size_t answer_to(const Datagram& datagram, Duration wait = 0s) {
    source.send(party.address(), datagram);
    world.settle();
    if (wait != 0s) world.advance(wait);
    size_t bytes = 0;
    for (const Datagram& answer : source.receive()) bytes += answer.size();
    drain(party.recv_cq);
    return bytes;
  }

  World world;
  Device& device = world.add_device();
  Party party;
  MemoryRegion region{party.pd, party.memory,
                      Access::local_write | Access::remote_write | Access::remote_read};
  Peer source{world};
};

Segment read_request(const Victim& victim, uint32_t length) {
  return {.opcode = kReadRequest,
          .sink_stag = 9,
          .read_length = length,
          .source_stag = victim.region.rkey(),
          .source_offset = victim.region.base()};
}

Segment write_record(const Victim& victim, uint32_t stag_error, size_t length) {
  return {.payload = pattern(length, 5),
          .opcode = kWriteRecord,
          .stag = victim.region.rkey() ^ stag_error,
          .tagged_offset = victim.region.base()};
}

std::vector<Datagram> every_kind(const Victim& victim) {
  std::vector<Datagram> all;
  uint32_t msn = 0;
  const auto add = [&](Segment segment) {
    segment.msn = ++msn;
    all.push_back(to_bytes(segment));
  };
  for (const size_t length : {0U, 1U, 8U, 9U, 10U, 500U, 1400U}) {
    for (uint8_t opcode = 3; opcode <= 6; ++opcode)
      for (const bool last : {true, false}) {
        Segment send{.last = last, .solicited = opcode >= 5, .payload = pattern(length, 4)};
        send.opcode = opcode;
        add(send);
        send.immediate = 4711;
        add(send);
      }
    add(write_record(victim, 0, length));
    add(write_record(victim, 1, length));
    add(write_record(victim, 1U << 20, length));
    add({.payload = pattern(length, 3), .opcode = kReadResponse, .stag = 9});
    for (uint8_t type = 0; type < 5; ++type)
      all.push_back(to_bytes(Control{.type = type, .content = pattern(length, 6)}));
  }
  for (const uint32_t length : {0U, 1U, 31U, 32U, 33U, 64U, 1000U, 65536U, 262144U, 262145U}) {
    add(read_request(victim, length));
    Segment refused = read_request(victim, length);
    refused.source_stag ^= 1;
    add(refused);
  }
  for (uint8_t type = 1; type < 4; ++type)
    all.push_back(to_bytes(Control{.type = type, .content = pattern(24, type)}));
  all.push_back(to_bytes(error_about(read_request(victim, 10), 0, 1, 0)));
  for (uint8_t datagram_class = 1; datagram_class < 16; ++datagram_class)
    add({.payload = pattern(200, 1), .datagram_class = datagram_class});
  return all;
}

/// Of the reliable kinds, from one who has no association: each kind, and each segment as data.
std::vector<Datagram> every_reliable_kind(const Victim& victim) {
  std::vector<Datagram> all;
  const auto header = [&](uint8_t kind, uint32_t names, size_t content) {
    return ReliableHeader{.kind = kind,
                          .window = 10,
                          .epoch = 1,
                          .peer_epoch = names,
                          .peer_incarnation = names,
                          .sequence = 1,
                          .content = pattern(content, kind)};
  };
  for (uint32_t names = 0; names < 2; ++names) {
    for (uint8_t kind = 0; kind < 10; ++kind)
      for (const size_t content : {0U, 4U, 8U, 16U, 24U, 128U, 1000U})
        all.push_back(to_bytes(1, header(kind, names, content)));
    ReliableHeader open = header(kRdOpen, names, 24);
    open.peer_epoch = 0;
    open.sequence = 0;
    all.push_back(to_bytes(1, open));
    open.content.assign(24, std::byte{0});
    all.push_back(to_bytes(1, open));
    ReliableHeader skip = header(kRdSkip, names, 0);
    skip.content = skip_content(kRdSend, 1);
    all.push_back(to_bytes(1, skip));
    for (Segment segment : {Segment{.payload = pattern(500, 1)}, write_record(victim, 0, 500),
                            write_record(victim, 1, 500), read_request(victim, 262144)}) {
      segment.datagram_class = 1;
      segment.rd_header = to_bytes(header(kRdData, names, 0));
      all.push_back(to_bytes(segment));
    }
  }
  return all;
}

/// The same with a few bytes changed and a CRC that fits.
Datagram changed(Datagram datagram, Random& random) {
  datagram.erase(datagram.end() - 4, datagram.end());
  for (uint64_t changes = random.below(4); changes != 0; --changes)
    datagram[random.below(datagram.size())] = static_cast<std::byte>(random.next());
  append_crc(datagram);
  return datagram;
}

}  // namespace

TEST_CASE("no kind of message makes a queue pair answer a stranger with more than was sent") {
  const QpType type = GENERATE(QpType::ud, QpType::rd);
  Victim victim(type);
  size_t answered = 0;
  for (const auto& kinds : {every_kind(victim), every_reliable_kind(victim)})
    for (const Datagram& datagram : kinds) {
      const size_t back = victim.answer_to(datagram, 10s);
      CAPTURE(to_string(type), datagram.size());
      CHECK(back <= datagram.size());
      answered += back != 0 ? 1 : 0;
    }
  CHECK(answered > (type == QpType::ud ? 40 : 10));  // so the test sees something
}

TEST_CASE("nor does any of many messages with wrong fields, whatever came before") {
  const QpType type = GENERATE(QpType::ud, QpType::rd);
  Victim victim(type);
  auto kinds = type == QpType::ud ? every_kind(victim) : every_reliable_kind(victim);
  Random random(2);
  size_t sent = 0;
  size_t returned = 0;
  size_t answered = 0;
  for (int i = 0; i < 100000; ++i) {
    const Datagram datagram = changed(kinds[random.below(kinds.size())], random);
    const size_t back = victim.answer_to(datagram);
    if (back > datagram.size()) FAIL("an answer of " << back << " bytes to " << datagram.size());
    sent += datagram.size();
    returned += back;
    answered += back != 0 ? 1 : 0;
  }
  victim.world.advance(10s);
  for (const Datagram& answer : victim.source.receive()) returned += answer.size();
  CHECK(returned <= sent);
  CHECK(answered > 1000);
}

TEST_CASE("a flood of Read Requests from a stranger brings no more than a flood of Challenges") {
  Victim victim;
  constexpr size_t kRequests = 2000;
  const Datagram request = to_bytes(read_request(victim, 262144));
  for (size_t i = 0; i < kRequests; ++i) {
    victim.source.send(victim.party.address(), request);
    if (i % 100 == 0) victim.world.settle();
  }
  victim.world.settle();
  victim.world.advance(1s);
  const auto answers = victim.source.receive();
  CHECK(answers.size() <= kRequests);
  for (const Datagram& answer : answers) {
    CHECK(answer.size() == 40);
    CHECK(read_control(answer).type == kChallenge);
  }
  CHECK(victim.device.counter("reads_served") == 0);
}
