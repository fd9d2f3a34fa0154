// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

using Bytes8 = std::vector<std::byte>;

/// Someone who speaks RD by the book, as far as the test wants.
class Puppet {
 public:
  Puppet(World& world, const Address& target, uint16_t port)
      : world_(world),
        target_(target),
        link_(world.network->open(Address::parse("10.0.1.1", port))) {}

  Address address() const { return link_->local_address(); }
  void send(const Bytes8& datagram) {
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{target_, {&piece, 1}};
    REQUIRE(link_->send({&outgoing, 1}).sent == 1);
    sent_bytes += datagram.size();
    world_.settle();
  }
  void send(const ReliableHeader& header) { send(to_bytes(incarnation, header)); }
  void send(ReliableHeader header, Segment segment) {
    segment.datagram_class = 1;
    segment.incarnation = incarnation;
    segment.rd_header = to_bytes(header);
    send(to_bytes(segment));
  }
  /// What came since the last call.
  std::vector<Bytes8> take() {
    std::vector<Bytes8> all;
    while (link_->receive(batch_) != 0)
      for (const llp::IncomingDatagram& one : batch_.datagrams()) {
        all.emplace_back(one.bytes.begin(), one.bytes.end());
        received_bytes += one.bytes.size();
      }
    return all;
  }
  std::vector<ReliableHeader> take_reliable() {
    std::vector<ReliableHeader> all;
    for (const Bytes8& one : take())
      if ((std::to_integer<int>(one[0]) & 15) == 1) all.push_back(read_reliable(one));
    return all;
  }
  static uint32_t word(const Bytes8& from, size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<uint32_t>(from[at + i]);
    return value;
  }

  ReliableHeader open(const Bytes8& shown = Bytes8(16)) const {
    return {.kind = kRdOpen,
            .window = 100,
            .epoch = epoch,
            .peer_incarnation = peer_incarnation,
            .content = shown};
  }
  /// The four steps.
  void associate() {
    send(open());
    auto answers = take();
    REQUIRE(answers.size() == 1);
    REQUIRE(answers[0].size() == 32);  // a Challenge
    peer_incarnation = word(answers[0], 4);
    cookie.assign(answers[0].begin() + 12, answers[0].begin() + 28);
    send(open(cookie));
    const auto accepts = take_reliable();
    REQUIRE(accepts.size() == 1);
    CHECK(accepts[0].kind == kRdAcknowledgement);
    CHECK(accepts[0].peer_epoch == epoch);
    CHECK(accepts[0].peer_incarnation == incarnation);
    CHECK(accepts[0].acknowledged == 0);
    CHECK(accepts[0].window > 0);
    peer_epoch = accepts[0].epoch;
  }
  ReliableHeader header(uint8_t kind, uint32_t sequence = 0, uint32_t acknowledged = 0) const {
    return {.kind = kind,
            .window = 100,
            .epoch = epoch,
            .peer_epoch = peer_epoch,
            .peer_incarnation = peer_incarnation,
            .sequence = sequence,
            .acknowledged = acknowledged};
  }

  uint32_t incarnation = 0x0BADCAFE;
  uint32_t epoch = 5;
  uint32_t peer_epoch = 0;
  uint32_t peer_incarnation = 0;
  Bytes8 cookie = Bytes8(16);
  size_t sent_bytes = 0;
  size_t received_bytes = 0;

 private:
  World& world_;
  const Address target_;
  std::unique_ptr<llp::DatagramLink> link_;
  llp::ReceiveBatch batch_{64, 65536, 64};
};

struct Hostile {
  explicit Hostile(const PartyOptions& options = {}) : target(device, rd_options(options)) {}
  uint64_t count(const char* counter) const { return device.counter(counter); }
  size_t received() { return drain(target.recv_cq).size(); }

  World world;
  Device& device = world.add_device();
  Party target;
  Puppet puppet{world, target.address(), 7000};
};

}  // namespace

TEST_CASE("rd: a foreign speaker is understood") {
  Hostile scene;
  scene.target.post_receives(2, 100);
  scene.puppet.associate();
  scene.puppet.send(scene.puppet.header(kRdData, 1), {.msn = 9, .payload = pattern(50, 1)});
  REQUIRE(scene.received() == 1);
  CHECK(same(scene.target.bytes(0, 50), pattern(50, 1)));
  scene.world.advance(1ms);
  const auto answers = scene.puppet.take_reliable();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].acknowledged == 1);
  scene.puppet.send(scene.puppet.header(kRdProbe));
  CHECK(scene.puppet.take_reliable().size() == 1);
}

TEST_CASE("rd: first contacts from forged sources make no state, and get no more than they send") {
  Hostile scene;
  for (uint16_t port = 10000; port < 11000; ++port) {
    Puppet forger(scene.world, scene.target.address(), port);
    forger.send(forger.open());
    forger.send(forger.open(Bytes8(16, std::byte{0xAB})));
    forger.peer_epoch = 3;
    forger.send(forger.header(kRdProbe));
    forger.send(forger.header(kRdData, 1), {.msn = 1});
    forger.send(forger.header(kRdAcknowledgement));
    forger.send(forger.header(kRdReset));
    forger.take();
    REQUIRE(forger.received_bytes <= forger.sent_bytes);
  }
  CHECK(scene.target.qp.peers().empty());
  CHECK(scene.received() == 0);
}

TEST_CASE("rd: no answer is longer than what it answers, of any kind") {
  Hostile scene;
  for (uint8_t kind = 1; kind <= 8; ++kind) {
    Puppet forger(scene.world, scene.target.address(), static_cast<uint16_t>(9000 + kind));
    ReliableHeader header = forger.header(kind, kind <= 3 || kind == 6 ? 1 : 0);
    header.peer_epoch = kind == kRdOpen ? 0 : 4;
    if (kind == kRdReset) header.window = 0;
    header.content.resize(kind == kRdOpen      ? 16
                          : kind == kRdFailure ? 8
                          : kind == kRdRefusal ? 4
                                               : 0);
    if (kind == kRdData)
      forger.send(header, Segment{.payload = {}});
    else
      forger.send(header);
    forger.take();
    INFO(int{kind});
    CHECK(forger.received_bytes <= forger.sent_bytes);
  }
}

TEST_CASE("rd: a cookie is good for its own address and incarnation alone") {
  Hostile scene;
  scene.puppet.associate();
  Puppet other(scene.world, scene.target.address(), 7001);
  other.peer_incarnation = scene.puppet.peer_incarnation;
  other.send(other.open(scene.puppet.cookie));
  CHECK(other.take_reliable().empty());
  Puppet again(scene.world, scene.target.address(), 7002);
  again.associate();
  again.incarnation ^= 1;
  again.send(again.open(again.cookie));
  CHECK(again.take_reliable().empty());
  CHECK(scene.target.qp.peers().size() == 2);
}

TEST_CASE("rd: each wrong field of the header has the datagram dropped") {
  Hostile scene;
  scene.target.post_receives(4, 100);
  scene.puppet.associate();
  const auto refused = [&](const ReliableHeader& header, const char* counter) {
    const uint64_t before = scene.count(counter);
    scene.puppet.send(header, {.msn = 1, .payload = pattern(10, 1)});
    CHECK(scene.count(counter) == before + 1);
    CHECK(scene.received() == 0);
    scene.puppet.take();
  };
  const ReliableHeader good = scene.puppet.header(kRdData, 1);
  const auto with = [&](auto&& change) {
    ReliableHeader wrong = good;
    change(wrong);
    return wrong;
  };
  refused(with([](auto& h) { h.kind = 0; }), "drop_rd_header");
  refused(with([](auto& h) { h.kind = 9; }), "drop_rd_header");
  refused(with([](auto& h) { h.kind = kRdSkip; }), "drop_rd_header");
  refused(with([](auto& h) { h.kind = kRdOpen; }), "drop_rd_header");
  refused(with([](auto& h) { h.kind = kRdReset; }), "drop_rd_header");
  refused(with([](auto& h) { h.flags = 1; }), "drop_rd_header");
  refused(with([](auto& h) { h.flags = 0x80; }), "drop_rd_header");
  refused(with([](auto& h) { h.epoch = 0; }), "drop_rd_header");
  refused(with([](auto& h) { h.peer_epoch = 0; }), "drop_rd_header");
  refused(with([](auto& h) { h.epoch = 4; }), "drop_rd_association");
  refused(with([](auto& h) { h.epoch = 6; }), "drop_rd_association");
  refused(with([](auto& h) { h.peer_epoch += 1; }), "drop_rd_association");
  refused(with([](auto& h) { h.peer_incarnation += 1; }), "drop_rd_association");
  refused(with([](auto& h) { h.acknowledged = 1; }), "drop_rd_lie");
  refused(with([](auto& h) { h.sequence = 0; }), "drop_duplicate");
  refused(with([](auto& h) { h.sequence = 0xFFFFFFFF; }), "drop_duplicate");
  refused(with([](auto& h) { h.sequence = 1025; }), "drop_rd_window");
  refused(with([](auto& h) { h.sequence = 0x80000000; }), "drop_rd_window");
  scene.puppet.send(good, {.msn = 1, .payload = pattern(10, 1)});
  CHECK(scene.received() == 1);
}

TEST_CASE("rd: data twice, or again with other content, is delivered once") {
  Hostile scene;
  scene.target.post_receives(4, 100);
  scene.puppet.associate();
  for (uint32_t i = 0; i < 3; ++i)
    scene.puppet.send(scene.puppet.header(kRdData, 1), {.msn = i, .payload = pattern(10, i)});
  CHECK(scene.received() == 1);
  CHECK(same(scene.target.bytes(0, 10), pattern(10, 0)));
  CHECK(scene.count("drop_duplicate") == 2);
}

TEST_CASE("rd: lies about what was received change nothing") {
  Hostile scene;
  scene.puppet.associate();
  for (uint64_t i = 0; i < 3; ++i)
    REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 64, i));
  scene.world.settle();
  REQUIRE(scene.puppet.take_reliable().size() == 3);
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 4));
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 0x7FFFFFFF));
  ReliableHeader map = scene.puppet.header(kRdAcknowledgement, 0, 0);
  map.content.assign(128, std::byte{0xFF});
  for (int i = 0; i < 50; ++i) scene.puppet.send(map);
  CHECK(scene.count("drop_rd_lie") == 52);
  CHECK(drain(scene.target.send_cq).empty());
  ReliableHeader shrunk = scene.puppet.header(kRdAcknowledgement, 0, 1);
  shrunk.window = 0;
  scene.puppet.send(shrunk);
  CHECK(drain(scene.target.send_cq).size() == 1);
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 3));
  CHECK(drain(scene.target.send_cq).size() == 2);
}

TEST_CASE("rd: floods of true acknowledgements and probes cost an answer each at most") {
  Hostile scene;
  scene.puppet.associate();
  REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 64));
  scene.world.settle();
  scene.puppet.take();
  ReliableHeader early = scene.puppet.header(kRdAcknowledgement);
  early.content.assign(8, std::byte{0});
  early.content[0] = std::byte{0x80};
  for (int i = 0; i < 1000; ++i) scene.puppet.send(early);
  CHECK(scene.puppet.take().size() <= 1);
  for (int i = 0; i < 50; ++i) scene.puppet.send(scene.puppet.header(kRdProbe));
  CHECK(scene.puppet.take().size() <= 50);
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 1));
  CHECK(drain(scene.target.send_cq).size() == 1);
}

TEST_CASE("rd: refusals of what was not sent, or not yet come to, change nothing") {
  Hostile scene;
  scene.puppet.associate();
  ReliableHeader refusal = scene.puppet.header(kRdRefusal, 1);
  refusal.content = {std::byte{0x01}, std::byte{0}, std::byte{0}, std::byte{0}};
  scene.puppet.send(refusal);
  for (uint64_t i = 0; i < 2; ++i)
    REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 64, i));
  scene.world.settle();
  scene.puppet.take();
  refusal.sequence = 2;
  scene.puppet.send(refusal);
  CHECK(drain(scene.target.send_cq).empty());
  refusal.sequence = 1;
  scene.puppet.send(refusal);
  auto done = drain(scene.target.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::remote_access_error);
  auto answers = scene.puppet.take_reliable();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].kind == kRdSkip);
  CHECK(answers[0].sequence == 1);
  scene.puppet.send(refusal);  // once more: the skip may have been lost
  answers = scene.puppet.take_reliable();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].kind == kRdSkip);
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 2));
  done = drain(scene.target.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::success);
}

TEST_CASE("rd: segments that make no sense are refused, one by one") {
  Hostile scene;
  scene.target.post_receives(4, 100);
  scene.puppet.associate();
  uint32_t sequence = 0;
  const auto refused = [&](const Segment& segment, uint8_t type, uint8_t code) {
    scene.puppet.take();
    scene.puppet.send(scene.puppet.header(kRdData, ++sequence), segment);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto answers = scene.puppet.take_reliable();
      REQUIRE(answers.size() == 1);
      CHECK(answers[0].kind == kRdRefusal);
      CHECK(answers[0].sequence == sequence);
      CHECK(answers[0].acknowledged == sequence - 1);
      CHECK(std::to_integer<int>(answers[0].content[0]) == type);
      CHECK(std::to_integer<int>(answers[0].content[1]) == code);
      if (repeat == 0) scene.puppet.send(scene.puppet.header(kRdData, sequence), segment);
    }
    scene.puppet.send(scene.puppet.header(kRdSkip, sequence));
    CHECK(scene.received() == 0);
  };
  refused({.msn = 1, .offset = 10, .payload = pattern(5, 1)}, 0x12, 4);   // no beginning
  refused({.msn = 1, .q_key = 5, .payload = pattern(5, 1)}, 0x02, 0xff);  // another Q_Key
  refused({.msn = 1, .payload = pattern(101, 1)}, 0x12, 5);               // too long
  refused({.msn = 1, .opcode = 9}, 0x02, 0xff);                           // no such opcode
  refused({.msn = 1, .payload = pattern(5, 1), .opcode = kWriteRecord, .stag = 0x77700}, 0x11, 0);
  refused({.opcode = kReadRequest, .read_length = 5, .source_stag = 0x77700}, 0x01, 0);
  scene.puppet.send(scene.puppet.header(kRdData, ++sequence), {.msn = 2, .payload = pattern(5, 1)});
  CHECK(scene.received() == 1);
  CHECK(scene.target.qp.state() == QpState::rts);
}

TEST_CASE("rd: more Read Requests than may wait are refused") {
  Hostile scene;
  MemoryRegion region(scene.target.pd, std::span(scene.target.memory), kAllAccess);
  scene.puppet.associate();
  // The puppet acknowledges no response, so none is over.
  for (uint32_t i = 1; i <= 17; ++i) {
    scene.puppet.send(scene.puppet.header(kRdData, i), {.msn = i,
                                                        .opcode = kReadRequest,
                                                        .sink_stag = i,
                                                        .read_length = 10,
                                                        .source_stag = region.rkey(),
                                                        .source_offset = region.base()});
  }
  const auto answers = scene.puppet.take_reliable();
  CHECK(std::count_if(answers.begin(), answers.end(),
                      [](const auto& one) { return one.kind == kRdRefusal; }) >= 1);
  CHECK(scene.count("drop_share") == 1);
}

TEST_CASE("rd: Read Responses and failures that nobody asked for are harmless") {
  Hostile scene;
  scene.puppet.associate();
  scene.puppet.send(scene.puppet.header(kRdData, 1),
                    {.payload = pattern(50, 1), .opcode = kReadResponse, .stag = 5});
  CHECK(scene.count("drop_response") == 1);
  ReliableHeader failure = scene.puppet.header(kRdFailure, 2);
  failure.content.resize(8);
  scene.puppet.send(failure);
  REQUIRE_FALSE(scene.target.qp.post_read({.wr_id = 4,
                                           .local = {scene.target.mr.sge(0, 100)},
                                           .destination = scene.puppet.address(),
                                           .remote = {5, 0}}));
  scene.world.settle();
  const auto datagrams = scene.puppet.take();
  REQUIRE_FALSE(datagrams.empty());
  const Bytes8& request = datagrams.back();
  const uint32_t sink = Puppet::word(request, 8 + 24 + 18);
  SECTION("bytes beyond what was asked for end the Read, and touch nothing") {
    std::fill(scene.target.memory.begin(), scene.target.memory.end(), std::byte{1});
    scene.puppet.send(scene.puppet.header(kRdData, 3, 1),
                      {.payload = pattern(101, 1), .opcode = kReadResponse, .stag = sink});
    const auto done = drain(scene.target.send_cq);
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == WcStatus::bad_response_error);
    CHECK(std::all_of(scene.target.memory.begin(), scene.target.memory.end(),
                      [](std::byte b) { return b == std::byte{1}; }));
  }
  SECTION("a response at another offset ends the Read") {
    scene.puppet.send(scene.puppet.header(kRdData, 3, 1), {.last = false,
                                                           .payload = pattern(50, 1),
                                                           .opcode = kReadResponse,
                                                           .stag = sink,
                                                           .tagged_offset = 1});
    CHECK(drain(scene.target.send_cq).at(0).status == WcStatus::bad_response_error);
  }
  SECTION("a response before the request is acknowledged is taken all the same") {
    scene.puppet.send(scene.puppet.header(kRdData, 3, 0),
                      {.payload = pattern(100, 1), .opcode = kReadResponse, .stag = sink});
    CHECK(drain(scene.target.send_cq).at(0).status == WcStatus::success);
    scene.puppet.send(scene.puppet.header(kRdData, 4, 0),
                      {.payload = pattern(100, 1), .opcode = kReadResponse, .stag = sink});
    CHECK(scene.count("drop_response") == 2);
    scene.world.advance(1s);
  }
}

TEST_CASE("rd: a reset must know the association, and Challenges one's own open") {
  Hostile scene;
  scene.target.post_receives(1, 100);
  scene.puppet.associate();
  ReliableHeader reset = scene.puppet.header(kRdReset);
  reset.window = 0;
  std::swap(reset.epoch, reset.peer_epoch);
  reset.epoch += 1;
  scene.puppet.send(reset);
  reset.epoch -= 1;
  reset.peer_incarnation += 1;
  scene.puppet.send(reset);
  scene.puppet.send(to_bytes(Control{.incarnation = 9, .type = kChallenge, .content = Bytes8(16)}));
  CHECK(scene.count("drop_control") == 1);
  scene.puppet.take();
  scene.puppet.send(scene.puppet.header(kRdData, 1), {.msn = 1, .payload = pattern(10, 1)});
  CHECK(scene.received() == 1);
}

TEST_CASE("rd: random reliable datagrams of the association break nothing") {
  Hostile scene({.reliable = {.receive_window = 32}});
  MemoryRegion region(scene.target.pd, std::span(scene.target.memory), kAllAccess);
  scene.puppet.associate();
  Random random(77);
  for (int round = 0; round < 20000; ++round) {
    ReliableHeader header = scene.puppet.header(static_cast<uint8_t>(1 + random.below(6)));
    header.sequence = header.kind <= 3 || header.kind == kRdRefusal
                          ? static_cast<uint32_t>(random.below(200))
                          : 0;
    header.acknowledged = static_cast<uint32_t>(random.below(100));
    header.window = static_cast<uint16_t>(random.below(65536));
    if (header.kind == kRdFailure) header.content.resize(8);
    if (header.kind == kRdRefusal) header.content.resize(4);
    if (header.kind == kRdAcknowledgement) header.content.resize(8 * random.below(17));
    for (std::byte& byte : header.content) byte = static_cast<std::byte>(random.next());
    if (random.below(8) == 0)
      static_cast<void>(scene.target.send(scene.puppet.address(), 0, random.below(5000)));
    if (random.below(8) == 0) static_cast<void>(scene.target.post_recv(0, 0, 3000));
    if (random.below(20) == 0)
      static_cast<void>(
          scene.target.qp.post_read({.local = {scene.target.mr.sge(0, random.below(600))},
                                     .destination = scene.puppet.address()}));
    if (header.kind == kRdData) {
      const std::array<uint8_t, 5> opcodes{0, kReadRequest, kReadResponse, kWriteRecord,
                                           kSendInvalidate};
      scene.puppet.send(
          header, {.msn = static_cast<uint32_t>(random.below(4)),
                   .offset = random.below(2) == 0 ? 0U : static_cast<uint32_t>(random.below(3000)),
                   .last = random.below(2) == 0,
                   .payload = pattern(random.below(1300), 1),
                   .opcode = opcodes[random.below(5)],
                   .stag = random.below(2) == 0 ? region.rkey() : 0,
                   .tagged_offset = region.base() + random.below(70000),
                   .read_length = static_cast<uint32_t>(random.below(70000)),
                   .source_stag = region.rkey(),
                   .source_offset = region.base() + random.below(100)});
    } else {
      scene.puppet.send(header);
    }
    if (random.below(16) == 0)
      scene.world.advance(Duration(static_cast<int64_t>(random.below(50'000'000))));
    drain(scene.target.send_cq);
    drain(scene.target.recv_cq);
    if (random.below(64) == 0) scene.puppet.take();
  }
  CHECK(scene.target.qp.state() == QpState::rts);
}
