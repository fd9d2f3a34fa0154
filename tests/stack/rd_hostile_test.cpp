// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "stack/blind_guesses.h"
#include "stack/rd_scene.h"
#include "stack/rd_sequence.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

using Bytes8 = std::vector<std::byte>;

/// Words of an acknowledgement's map.
constexpr size_t kMostMapWords = 64;

/// Someone who speaks RD by the book, as far as the test wants.
class Puppet {
 public:
  Puppet(World& world, const Address& target, uint16_t port, const char* host = "10.0.1.1")
      : world_(world), target_(target), link_(world.network->open(Address::parse(host, port))) {}

  Address address() const { return link_->local_address(); }
  void send(const Bytes8& datagram) {
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{target_, {&piece, 1}};
    REQUIRE(link_->send({&outgoing, 1}).sent == 1);
    sent_bytes += datagram.size();
    world_.settle();
  }
  void send(const ReliableHeader& header) { send(to_bytes(incarnation, header)); }
  /// So many copies, before the target looks at any of them.
  void send_together(const ReliableHeader& header, size_t copies) {
    const Bytes8 datagram = to_bytes(incarnation, header);
    const ConstBytes piece(datagram);
    const std::vector<llp::OutgoingDatagram> all(copies, {target_, {&piece, 1}});
    REQUIRE(link_->send(all).sent == copies);
    world_.settle();
  }
  void send(ReliableHeader header, Segment segment) {
    segment.datagram_class = 1;
    segment.incarnation = incarnation;
    segment.rd_header = to_bytes(header);
    send(to_bytes(segment));
  }
  /// The datagrams that came since the last call.
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

  ReliableHeader open(const Bytes8& shown = Bytes8(16)) const {
    return {.kind = kRdOpen,
            .window = window,
            .epoch = epoch,
            .peer_incarnation = peer_incarnation,
            .content = challenge_content(nonce, shown)};
  }
  /// The four steps.
  void associate() {
    send(open());
    const auto answers = take();
    REQUIRE(answers.size() == 1);
    REQUIRE(answers[0].size() == 40);
    const Control challenge = read_control(answers[0]);
    CHECK(challenge.type == kChallenge);
    CHECK(nonce_of(challenge) == nonce);
    peer_incarnation = challenge.incarnation;
    cookie = cookie_of(challenge);
    send(open(cookie));
    const auto accepts = take_reliable();
    REQUIRE(accepts.size() == 1);
    peer_epoch = accepts[0].epoch;
    CHECK(accepts[0].kind == kRdAcknowledgement);
    CHECK(accepts[0].peer_epoch == epoch);
    CHECK(accepts[0].peer_incarnation == incarnation);
    CHECK(accepts[0].acknowledged == number(0));
    CHECK(accepts[0].window > 0);
  }
  /// Answers the target's open, which is among what came.
  void accept_open(uint8_t flags) {
    const auto came = take_reliable();
    const auto asked = std::ranges::find(came, uint8_t{kRdOpen}, &ReliableHeader::kind);
    REQUIRE(asked != came.end());
    send(to_bytes(Control{.incarnation = incarnation,
                          .type = kChallenge,
                          .content = challenge_content(read_be64(asked->content, 0), cookie)}));
    take();
    peer_epoch = asked->epoch;
    epoch += 1;
    ReliableHeader acceptance = header(kRdAcknowledgement);
    acceptance.flags = flags;
    send(acceptance);
  }
  /// Of the n-th datagram of this side, counted from 1; and of the target.
  uint32_t number(uint32_t n) const {
    return first_number({incarnation, epoch}, {peer_incarnation, peer_epoch}) + n - 1;
  }
  uint32_t peer_number(uint32_t n) const {
    return first_number({peer_incarnation, peer_epoch}, {incarnation, epoch}) + n - 1;
  }
  /// `sequence` and `acknowledged` count from 1. A refusal and a reset have the sequence of a
  /// datagram of the target, all others their own.
  ReliableHeader header(uint8_t kind, uint32_t sequence = 0, uint32_t acknowledged = 0) const {
    const bool answers = kind == kRdRefusal || kind == kRdReset;
    const bool numbered = kind != kRdAcknowledgement && kind != kRdOpen;
    const bool acknowledges = kind != kRdOpen && kind != kRdReset;
    return {.kind = kind,
            .window = kind == kRdReset ? uint16_t{0} : window,
            .epoch = epoch,
            .peer_epoch = peer_epoch,
            .peer_incarnation = peer_incarnation,
            .sequence = !numbered ? 0
                        : answers ? peer_number(sequence)
                                  : number(sequence),
            .acknowledged = acknowledges ? peer_number(acknowledged) : 0};
  }
  ReliableHeader skip(uint32_t sequence, uint8_t kind, uint32_t message) const {
    ReliableHeader made = header(kRdSkip, sequence);
    made.content = skip_content(kind, message);
    return made;
  }

  uint32_t incarnation = 0x0BADCAFE;
  uint32_t epoch = 5;
  uint16_t window = 100;
  uint32_t peer_epoch = 0;
  uint32_t peer_incarnation = 0;
  uint64_t nonce = 0x0123456789ABCDEF;
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
  /// The next probe; time passes until it comes.
  ReliableHeader probe() {
    for (int i = 0; i < 1000; ++i) {
      for (const ReliableHeader& one : puppet.take_reliable())
        if (one.kind == kRdProbe) return one;
      world.advance(10ms);
    }
    FAIL("no probe came");
    return {};
  }
  /// Whether a reset with this number has the target open an association again.
  bool opens_anew(uint32_t sequence) {
    ReliableHeader reset = puppet.header(kRdReset);
    reset.sequence = sequence;
    puppet.send(reset);
    for (const ReliableHeader& one : puppet.take_reliable())
      if (one.kind == kRdOpen) return true;
    return false;
  }

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
  CHECK(answers[0].acknowledged == scene.puppet.number(1));
  scene.puppet.send(scene.puppet.header(kRdProbe, 1));
  CHECK(scene.puppet.take_reliable().size() == 1);
}

TEST_CASE("rd: of two incarnations at one address each is told what was delivered of its own") {
  Hostile scene;
  Puppet& puppet = scene.puppet;
  scene.target.post_receives(4, 100);
  puppet.associate();
  REQUIRE_FALSE(scene.target.send(puppet.address(), 0, 100, 1));
  scene.world.settle();
  puppet.take();
  const auto first = std::tuple(puppet.incarnation, puppet.epoch, puppet.peer_epoch);
  std::tie(puppet.incarnation, puppet.epoch) = std::tuple(0x22222222, 9);
  puppet.send(puppet.open());
  for (const Bytes8& one : puppet.take())
    if (one.size() == 40) puppet.cookie = cookie_of(read_control(one));
  puppet.send(puppet.open(puppet.cookie));
  REQUIRE(scene.target.qp.peers().size() == 2);

  std::tie(puppet.incarnation, puppet.epoch, puppet.peer_epoch) = first;
  puppet.send(puppet.header(kRdAcknowledgement));  // the first one is there still
  puppet.send(puppet.header(kRdData, 1), {.msn = 9, .payload = pattern(50, 1)});
  REQUIRE(scene.received() == 1);
  REQUIRE(scene.opens_anew(puppet.peer_number(1)));
  puppet.send(puppet.header(kRdData, 1), {.msn = 9, .payload = pattern(50, 1)});
  const auto answers = puppet.take_reliable();
  const auto reset = std::ranges::find(answers, uint8_t{kRdReset}, &ReliableHeader::kind);
  REQUIRE(reset != answers.end());
  CHECK(reset->flags == 1);  // broken

  puppet.epoch += 1;
  puppet.send(puppet.open());
  for (const Bytes8& one : puppet.take())
    if (one.size() == 40) puppet.cookie = cookie_of(read_control(one));
  puppet.send(puppet.open(puppet.cookie));
  CHECK(scene.target.qp.peers().size() == 2);
}

TEST_CASE("rd: peers at one address leave half of the buffer to others") {
  Hostile scene({.reliable = {.receive_window = 64, .max_buffer = 128 << 10}});
  for (uint16_t port = 8000; port < 8004; ++port) {
    Puppet greedy(scene.world, scene.target.address(), port);
    greedy.associate();
    for (uint32_t early = 2; early < 60; ++early)
      greedy.send(greedy.header(kRdData, early), {.msn = 1, .payload = pattern(50, 1)});
    greedy.take();
  }
  CHECK(scene.count("drop_no_context") > 100);
  Puppet honest(scene.world, scene.target.address(), 8000, "10.0.2.1");
  honest.associate();
  honest.send(honest.header(kRdProbe));
  const auto answers = honest.take_reliable();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].window >= 30);
}

TEST_CASE("rd: memory of what came early is given back where the gap is not filled") {
  Hostile scene(
      {.reliable = {.message_timeout = 2s, .receive_window = 64, .max_buffer = 128 << 10}});
  const auto window = [&scene](uint16_t port) {
    Puppet other(scene.world, scene.target.address(), port);
    other.associate();
    other.send(other.header(kRdProbe));
    const auto answers = other.take_reliable();
    REQUIRE(answers.size() == 1);
    return answers[0].window;
  };
  Puppet& greedy = scene.puppet;
  greedy.associate();
  scene.target.post_receives(2, 100);
  greedy.send(greedy.header(kRdData, 1), {.msn = 1, .payload = pattern(50, 1)});
  REQUIRE(scene.received() == 1);
  for (uint32_t early = 3; early < 60; ++early)
    greedy.send(greedy.header(kRdData, early), {.msn = 2, .payload = pattern(50, 1)});
  REQUIRE(window(8001) < 10);
  for (int i = 0; i < 19; ++i) {  // it is not silent
    scene.world.advance(100ms);
    greedy.send(greedy.header(kRdProbe, 59));
  }
  CHECK(window(8002) < 10);
  scene.world.advance(200ms);
  CHECK(window(8003) >= 30);
  greedy.take();
  greedy.send(greedy.header(kRdData, 3), {.msn = 2, .payload = pattern(50, 1)});
  const auto answers = greedy.take_reliable();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].kind == kRdReset);
}

TEST_CASE("rd: memory of what came early is given back where what was refused is never skipped") {
  Hostile scene({.reliable = {.message_timeout = 2s}});
  Puppet& greedy = scene.puppet;
  greedy.associate();
  greedy.send(greedy.header(kRdData, 2), {.msn = 2, .payload = pattern(50, 1)});
  scene.world.advance(1900ms);
  greedy.send(greedy.header(kRdData, 1), {.msn = 1, .q_key = 1, .payload = pattern(50, 1)});
  REQUIRE(scene.count("rd_refused") == 1);
  scene.world.advance(1900ms);
  CHECK(scene.count("rd_early_dropped") == 0);
  scene.world.advance(200ms);
  CHECK(scene.count("rd_early_dropped") == 1);
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
    header.content.resize(kind == kRdOpen      ? 24
                          : kind == kRdFailure ? 8
                          : kind == kRdRefusal ? 4
                                               : 0);
    if (kind == kRdSkip) header.content = skip_content(kRdSend, 1);
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
  refused(with([](auto& h) { h.acknowledged += 1; }), "drop_rd_invalid_ack");
  refused(with([](auto& h) { h.sequence -= 1; }), "drop_duplicate");
  refused(with([](auto& h) { h.sequence -= 2; }), "drop_duplicate");
  refused(with([](auto& h) { h.sequence += 4096; }), "drop_rd_window");
  refused(with([](auto& h) { h.sequence += 0x7FFFFFFF; }), "drop_rd_window");
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

TEST_CASE("rd: invalid acknowledgements change nothing") {
  Hostile scene;
  scene.puppet.associate();
  for (uint64_t i = 0; i < 3; ++i)
    REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 64, i));
  scene.world.settle();
  REQUIRE(scene.puppet.take_reliable().size() == 3);
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 4));
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 0x7FFFFFFF));
  ReliableHeader map = scene.puppet.header(kRdAcknowledgement, 0, 0);
  for (size_t words = 1; words <= kMostMapWords; ++words) {
    map.content.assign(words * 8, std::byte{0xFF});
    scene.puppet.send(map);
  }
  CHECK(scene.count("drop_rd_invalid_ack") == 2 + kMostMapWords);
  CHECK(drain(scene.target.send_cq).empty());
  ReliableHeader shrunk = scene.puppet.header(kRdAcknowledgement, 0, 1);
  shrunk.window = 0;
  scene.puppet.send(shrunk);
  CHECK(drain(scene.target.send_cq).size() == 1);
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 3));
  CHECK(drain(scene.target.send_cq).size() == 2);
}

TEST_CASE("rd: maps of zeros are harmless, before anything is sent and after all is acknowledged") {
  Hostile scene;
  scene.puppet.associate();
  const auto send_zeros = [&](uint32_t acknowledged) {
    for (size_t words = 1; words <= kMostMapWords; ++words) {
      ReliableHeader map = scene.puppet.header(kRdAcknowledgement, 0, acknowledged);
      map.content.assign(words * 8, std::byte{0});
      scene.puppet.send(map);
    }
  };
  send_zeros(0);
  REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 64));
  scene.world.settle();
  REQUIRE(scene.puppet.take_reliable().size() == 1);
  send_zeros(0);
  CHECK(drain(scene.target.send_cq).empty());
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 1));
  CHECK(drain(scene.target.send_cq).size() == 1);
  scene.world.advance(10s);  // memory of a peer that is quiet is given back
  send_zeros(1);
  CHECK(scene.count("drop_rd_invalid_ack") == 0);
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
  const auto sent = scene.puppet.take();
  REQUIRE(sent.size() == 2);
  const uint32_t msn = read_segment(sent[0], 24).msn;
  refusal.sequence = scene.puppet.peer_number(2);
  scene.puppet.send(refusal);
  CHECK(drain(scene.target.send_cq).empty());
  refusal.sequence = scene.puppet.peer_number(1);
  scene.puppet.send(refusal);
  auto done = drain(scene.target.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::remote_access_error);
  auto answers = scene.puppet.take_reliable();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].kind == kRdSkip);
  CHECK(answers[0].sequence == scene.puppet.peer_number(1));
  CHECK(answers[0].content == skip_content(kRdSend, msn));
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
    const uint8_t kind = segment.opcode == kWriteRecord   ? kRdWriteRecord
                         : segment.opcode == kReadRequest ? kRdReadRequest
                                                          : kRdSend;
    scene.puppet.take();
    scene.puppet.send(scene.puppet.header(kRdData, ++sequence), segment);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const auto answers = scene.puppet.take_reliable();
      REQUIRE(answers.size() == 1);
      CHECK(answers[0].kind == kRdRefusal);
      CHECK(answers[0].sequence == scene.puppet.number(sequence));
      CHECK(answers[0].acknowledged == scene.puppet.number(sequence - 1));
      CHECK(std::to_integer<int>(answers[0].content[0]) == type);
      CHECK(std::to_integer<int>(answers[0].content[1]) == code);
      if (repeat == 0) scene.puppet.send(scene.puppet.header(kRdData, sequence), segment);
    }
    scene.puppet.send(scene.puppet.skip(sequence, kind, segment.msn));
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

namespace {

/// Peers of three addresses that begin Sends of two segments, at a target with eight receives: four
/// of them may be held by such Sends, two by those of one address.
struct Beginners : Hostile {
  Beginners() { target.post_receives(8, 100); }
  Puppet& begin(const char* host) {
    peers.emplace_back(world, target.address(), static_cast<uint16_t>(8000 + peers.size()), host);
    Puppet& peer = peers.back();
    peer.associate();
    peer.send(peer.header(kRdData, 1), {.msn = 1, .last = false, .payload = pattern(10, 1)});
    answer = peer.take_reliable().at(0);
    return peer;
  }
  bool begins(const char* host) {
    const Puppet& peer = begin(host);
    return answer.acknowledged == peer.number(1);
  }
  static bool goes_on(Puppet& peer) {
    const auto answers = peer.take_reliable();
    return !answers.empty() && answers.back().acknowledged == peer.number(1);
  }

  std::deque<Puppet> peers;
  ReliableHeader answer;
};

}  // namespace

TEST_CASE("rd: peers that wait for a share of the receives hear nothing until they get it") {
  Beginners scene;
  for (const char* host : {"10.0.2.1", "10.0.3.1"}) {
    CHECK(scene.begins(host));
    CHECK(scene.begins(host));
    for (int i = 0; i < 10; ++i) CHECK_FALSE(scene.begins(host));
  }
  for (Puppet& peer : scene.peers) peer.take();
  scene.puppet.associate();
  for (uint32_t i = 1; i <= 10; ++i) {
    scene.puppet.send(scene.puppet.header(kRdData, i), {.msn = i, .payload = pattern(10, i)});
    REQUIRE(scene.received() == 1);
    scene.target.post_receives(1, 100);
    scene.world.settle();
  }
  for (Puppet& peer : scene.peers) CHECK(peer.take().empty());
}

TEST_CASE("rd: a share of the receives that is free goes to an address that holds fewest") {
  Beginners scene;
  Puppet& first = scene.begin("10.0.2.1");
  CHECK(scene.begins("10.0.2.1"));
  Puppet& third = scene.begin("10.0.2.1");
  CHECK(scene.begins("10.0.3.1"));
  CHECK(scene.begins("10.0.3.1"));
  Puppet& last = scene.begin("10.0.4.1");
  CHECK_FALSE(Beginners::goes_on(third));
  CHECK_FALSE(Beginners::goes_on(last));
  first.send(first.header(kRdData, 2), {.msn = 1, .offset = 10, .payload = pattern(10, 2)});
  CHECK(scene.received() == 1);
  scene.target.post_receives(1, 100);
  scene.world.advance(1ms);
  CHECK_FALSE(Beginners::goes_on(third));
  CHECK(Beginners::goes_on(last));
}

TEST_CASE("rd: a receive that is posted has a Send go on that waits for a share of them") {
  Beginners scene;
  for (const char* host : {"10.0.2.1", "10.0.3.1"})
    for (int i = 0; i < 2; ++i) CHECK(scene.begins(host));
  Puppet& last = scene.begin("10.0.4.1");
  CHECK_FALSE(Beginners::goes_on(last));
  scene.target.post_receives(2, 100);
  scene.world.settle();
  CHECK(Beginners::goes_on(last));
}

TEST_CASE("rd: peers of which nothing is heard do not shut out others from a full table") {
  Hostile scene({.reliable = {.max_peers = 8}});
  std::deque<Puppet> silent;
  for (uint16_t port = 8000; port < 8007; ++port)
    silent.emplace_back(scene.world, scene.target.address(), port, "10.0.2.1").associate();
  REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 10, 1));
  scene.world.settle();
  const auto opens = scene.puppet.take_reliable();
  REQUIRE(opens.size() == 1);  // a place is kept for those that this side sends to
  CHECK(opens[0].kind == kRdOpen);
  scene.world.advance(1500ms);
  Puppet newcomer(scene.world, scene.target.address(), 9000, "10.0.3.1");
  newcomer.associate();
  CHECK(scene.count("rd_forgotten") == 1);
}

TEST_CASE("rd: segments without bytes do not prolong the time of a Send that is not whole") {
  Hostile scene({.reliable = {.message_timeout = 10s}});
  scene.target.post_receives(2, 100);
  scene.puppet.associate();
  const auto piece = [&](uint32_t sequence, uint32_t offset, size_t size) {
    scene.puppet.send(
        scene.puppet.header(kRdData, sequence),
        {.msn = 9, .offset = offset, .last = false, .payload = pattern(size, sequence)});
  };
  piece(1, 0, 10);
  scene.world.advance(9s);
  piece(2, 10, 1);
  for (uint32_t sequence = 3; sequence < 12; ++sequence) {
    scene.world.advance(1s);
    piece(sequence, 11, 0);
  }
  CHECK(scene.count("message_timeouts") == 0);
  scene.world.advance(1s);
  CHECK(scene.count("message_timeouts") == 1);
  piece(12, 11, 0);
  CHECK(scene.count("rd_refused") == 1);
}

namespace {

/// Peers that name memory: of a region that they may write and read, or in vain.
struct Guessing : Hostile {
  explicit Guessing(const DatagramOptions& options = {}) : Hostile({.datagram = options}) {}

  Segment naming(uint32_t msn, uint32_t stag, uint32_t length = 10) const {
    if (reads)
      return {.msn = msn,
              .opcode = kReadRequest,
              .sink_stag = msn,
              .read_length = length,
              .source_stag = stag,
              .source_offset = region.base()};
    return {.msn = msn,
            .payload = pattern(length, msn),
            .opcode = kWriteRecord,
            .stag = stag,
            .tagged_offset = region.base()};
  }
  /// The n-th datagram of `peer`; where it is a guess, also its skip.
  void guess(Puppet& peer, uint32_t n) const {
    peer.send(peer.header(kRdData, n), naming(n, region.rkey() ^ 0x100));
    peer.send(peer.skip(n, reads ? kRdReadRequest : kRdWriteRecord, n));
  }
  void name_rightly(Puppet& peer, uint32_t n) const {
    peer.send(peer.header(kRdData, n), naming(n, region.rkey()));
  }
  /// The messages that were done since the last call: records, or responses to `peer`.
  size_t done(Puppet& peer) {
    if (!reads) return received();
    size_t responses = 0;
    for (const ReliableHeader& one : peer.take_reliable()) responses += one.kind == kRdData ? 1 : 0;
    return responses;
  }
  Puppet& add(uint16_t port, const char* host) {
    Puppet& peer = others.emplace_back(world, target.address(), port, host);
    peer.associate();
    return peer;
  }

  MemoryRegion region{target.pd, std::span(target.memory), kAllAccess};
  const bool reads = GENERATE(false, true);
  std::deque<Puppet> others;
};

}  // namespace

TEST_CASE("rd: 20,000 guesses of STags in no time come to a hundred, and disturb no other peer") {
  Guessing scene;
  Puppet& neighbour = scene.add(7001, "10.0.1.1");
  Puppet& honest = scene.add(7002, "10.0.2.1");
  scene.puppet.associate();
  for (uint32_t i = 1; i <= 20'000; ++i) {
    scene.guess(scene.puppet, i);
    if (i % 100 == 0) scene.puppet.take();
  }
  CHECK(scene.count("drop_stag") == 100);
  CHECK(scene.count("rd_held") == 1);
  for (Puppet* peer : {&neighbour, &honest}) {
    scene.name_rightly(*peer, 1);
    CHECK(scene.done(*peer) == 1);
  }
}

TEST_CASE("rd: datagrams of a peer over its limit of wrong STags wait for the next second") {
  Guessing scene({.stag_misses_per_source = 3});
  scene.target.post_receives(1, 100);
  scene.puppet.associate();
  for (uint32_t i = 1; i <= 3; ++i) scene.guess(scene.puppet, i);
  scene.name_rightly(scene.puppet, 4);
  scene.puppet.send(scene.puppet.header(kRdData, 5), {.msn = 9, .payload = pattern(20, 1)});
  scene.world.advance(1s - 1ms);
  CHECK(scene.received() == 0);
  CHECK(scene.count("rd_held") == 1);
  CHECK(scene.count("drop_stag") == 3);
  scene.puppet.take();
  scene.world.advance(1ms);
  CHECK(scene.received() == (scene.reads ? 1 : 2));
  CHECK(scene.done(scene.puppet) == (scene.reads ? 1 : 0));
  CHECK(scene.count("rd_refused") == 3);
  // A miss of this second, and those of the last one do not count any more.
  scene.guess(scene.puppet, 6);
  CHECK(scene.count("drop_stag") == 4);
}

TEST_CASE("rd: a message that names no memory does not wait for the limit of wrong STags") {
  Guessing scene({.stag_misses_per_source = 1});
  scene.target.post_receives(1, 100);
  scene.puppet.associate();
  scene.guess(scene.puppet, 1);
  scene.puppet.send(scene.puppet.header(kRdData, 2), {.msn = 1, .payload = pattern(20, 1)});
  CHECK(scene.received() == 1);
  if (!scene.reads) return;
  scene.puppet.take();
  scene.puppet.send(scene.puppet.header(kRdData, 3), scene.naming(3, 0, 0));
  CHECK(scene.done(scene.puppet) == 1);
}

TEST_CASE("rd: guesses of all peers together are limited, and addresses that never guess go on") {
  Guessing scene({.stag_misses_per_source = 5, .stag_misses = 12});
  Puppet& honest = scene.add(7002, "10.0.2.1");
  Puppet& neighbour = scene.add(7003, "10.0.3.1");
  scene.name_rightly(honest, 1);
  scene.name_rightly(neighbour, 1);
  CHECK(scene.done(honest) + scene.done(neighbour) == 2);
  for (uint16_t port = 8000; port < 8010; ++port) {
    Puppet& guesser = scene.add(port, "10.0.3.1");
    for (uint32_t i = 1; i <= 10; ++i) scene.guess(guesser, i);
  }
  CHECK(scene.count("drop_stag") == 12);
  CHECK(scene.count("rd_held") == 10);
  scene.name_rightly(honest, 2);
  CHECK(scene.done(honest) == 1);
  // A peer at the address of those who guess has to wait, as one that has named nothing yet, and
  // loses nothing.
  Puppet& newcomer = scene.add(7004, "10.0.4.1");
  for (Puppet* peer : {&neighbour, &newcomer}) {
    scene.name_rightly(*peer, peer == &neighbour ? 2 : 1);
    CHECK(scene.done(*peer) == 0);
  }
  scene.world.advance(1ms);
  for (Puppet& peer : scene.others) peer.take();
  scene.world.advance(1s - 2ms);
  for (Puppet& peer : scene.others)
    if (peer.address().port() >= 8000) CHECK(peer.take().empty());
  scene.world.advance(1ms);
  if (scene.reads) {  // responses are repeated until somebody acknowledges them
    CHECK(scene.done(neighbour) >= 1);
    CHECK(scene.done(newcomer) >= 1);
  } else {
    CHECK(scene.received() == 2);
  }
  CHECK(scene.count("rd_refused") <= 2 * 12);
}

TEST_CASE(
    "rd: guesses from ever new addresses are limited together, and newcomers get their turn") {
  Guessing scene({.stag_misses = 12});
  for (int host = 1; host <= 40; ++host) {
    const std::string address = "10.0.5." + std::to_string(host);
    scene.guess(scene.add(8000, address.c_str()), 1);
  }
  CHECK(scene.count("drop_stag") == 12);
  Puppet& newcomer = scene.add(7004, "10.0.4.1");
  scene.name_rightly(newcomer, 1);
  CHECK(scene.done(newcomer) == 0);
  for (Puppet& peer : scene.others) peer.take();
  size_t done = 0;
  for (uint64_t second = 1; second <= 4; ++second) {
    scene.world.advance(1s);
    CHECK(scene.count("drop_stag") <= 12 * (second + 1));
    done += scene.done(newcomer);
  }
  CHECK(scene.count("drop_stag") == 40);
  CHECK(done >= 1);  // a response is repeated until it is acknowledged
}

TEST_CASE("rd: Sends with Invalidate that name no memory are limited as guesses") {
  Hostile scene({.capacity = {.max_recv_wr = 256}});
  const MemoryRegion region(scene.target.pd, std::span(scene.target.memory),
                            Access::local_write | Access::remote_invalidate);
  scene.target.post_receives(200, 64);
  scene.puppet.associate();
  const auto invalidate = [&](uint32_t n, uint32_t stag) {
    scene.puppet.send(
        scene.puppet.header(kRdData, n),
        {.msn = n, .q_key = stag, .payload = pattern(10, n), .opcode = kSendInvalidate});
  };
  for (uint32_t n = 1; n <= 150; ++n) invalidate(n, region.rkey() ^ 0x100);
  invalidate(151, region.rkey());
  CHECK(scene.count("drop_stag") == 100);
  CHECK(scene.count("rd_held") == 1);
  CHECK(region.valid());
  scene.world.advance(1s);
  CHECK(scene.count("drop_stag") == 150);
  CHECK(scene.received() == 151);
  CHECK_FALSE(region.valid());
}

TEST_CASE("rd: those that wait for the limit of wrong STags stand in line") {
  Guessing scene({.stag_misses = 12});
  std::vector<uint32_t> guesses;
  const auto guess_again = [&](size_t i) {
    Puppet& guesser = scene.others[i];
    bool refused = false;
    for (const ReliableHeader& one : guesser.take_reliable()) refused |= one.kind == kRdRefusal;
    if (!refused) return;
    const uint32_t n = guesses[i]++;
    guesser.send(guesser.skip(n, scene.reads ? kRdReadRequest : kRdWriteRecord, n));
    guesser.send(guesser.header(kRdData, n + 1), scene.naming(n + 1, scene.region.rkey() ^ 0x100));
  };
  const auto add_guessers = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const std::string address = "10.0.5." + std::to_string(guesses.size() + 1);
      Puppet& guesser = scene.add(8000, address.c_str());
      guesses.push_back(1);
      guesser.send(guesser.header(kRdData, 1), scene.naming(1, scene.region.rkey() ^ 0x100));
    }
  };
  add_guessers(12);
  CHECK(scene.count("drop_stag") == 12);
  add_guessers(30);
  Puppet newcomer(scene.world, scene.target.address(), 7004, "10.0.4.1");
  newcomer.associate();
  scene.name_rightly(newcomer, 1);
  add_guessers(60);
  for (uint64_t second = 1; second <= 3; ++second) {  // 12 a second go before it
    for (size_t i = 0; i < guesses.size(); ++i) guess_again(i);
    CHECK(scene.done(newcomer) == 0);
    scene.world.advance(1s);
    CHECK(scene.count("drop_stag") <= 12 * (second + 1));
  }
  CHECK(scene.done(newcomer) >= 1);  // a response is repeated until it is acknowledged
}

TEST_CASE("rd: a Send whose rest waits for the limit of wrong STags is not given up") {
  Hostile scene(
      {.datagram = {.stag_misses_per_source = 3}, .reliable = {.message_timeout = 500ms}});
  const MemoryRegion region(scene.target.pd, std::span(scene.target.memory),
                            Access::local_write | Access::remote_invalidate);
  scene.target.post_receives(20, 64);
  scene.puppet.associate();
  const auto invalidate = [&](uint32_t n, const Segment& part) {
    Segment segment = part;
    segment.opcode = kSendInvalidate;
    segment.payload = pattern(10, n);
    scene.puppet.send(scene.puppet.header(kRdData, n), segment);
  };
  for (uint32_t n = 1; n <= 3; ++n) invalidate(n, {.msn = n, .q_key = region.rkey() ^ 0x100});
  CHECK(scene.count("drop_stag") == 3);
  CHECK(scene.received() == 3);
  invalidate(4, {.msn = 4, .last = false, .q_key = region.rkey()});
  invalidate(5, {.msn = 4, .offset = 10, .q_key = region.rkey()});
  scene.world.advance(900ms);
  CHECK(scene.received() == 0);
  scene.world.advance(100ms);
  CHECK(scene.received() == 1);
  CHECK(scene.count("message_timeouts") == 0);
  CHECK_FALSE(region.valid());
}

TEST_CASE("rd: peers that only ask for signs of life keep no memory of what came early") {
  Hostile scene({.reliable = {.max_buffer = 128 << 10}});  // eight lists of 8 KiB for an address
  scene.target.post_receives(20, 100);
  std::deque<Puppet> peers;
  const auto send = [&](Puppet& peer, uint32_t n) {
    peer.send(peer.header(kRdData, n), {.msn = n, .payload = pattern(10, n)});
  };
  for (uint16_t port = 8000; port < 8008; ++port) {
    Puppet& peer = peers.emplace_back(scene.world, scene.target.address(), port, "10.0.2.1");
    peer.associate();
    send(peer, 2);
    send(peer, 1);
  }
  const uint64_t dropped = scene.count("drop_no_context");
  for (int i = 0; i < 4; ++i) {
    scene.world.advance(300ms);
    for (Puppet& peer : peers) peer.send(peer.header(kRdProbe, 2));
  }
  Puppet& last =
      peers.emplace_back(scene.world, scene.target.address(), uint16_t{8008}, "10.0.2.1");
  last.associate();
  send(last, 2);
  CHECK(scene.count("drop_no_context") == dropped);
}

TEST_CASE(
    "rd: an association that ends has a Send go on that waits for its share of the receives") {
  Hostile scene;
  scene.target.post_receives(2, 100);
  Puppet other(scene.world, scene.target.address(), 7001, "10.0.2.1");
  for (Puppet* peer : {&scene.puppet, &other}) {
    peer->associate();
    peer->send(peer->header(kRdData, 1), {.msn = 1, .last = false, .payload = pattern(10, 1)});
  }
  scene.puppet.take();
  other.take();
  scene.puppet.send(scene.puppet.header(kRdReset, 0));
  scene.world.settle();  // no time passes: no probe brings it
  const auto answers = other.take_reliable();
  REQUIRE_FALSE(answers.empty());
  CHECK(answers.back().acknowledged == other.number(1));
}

TEST_CASE("rd: in a full table the address with most peers gives way, however much it chatters") {
  Hostile scene({.reliable = {.max_peers = 16, .max_peers_per_address = 4}});
  std::deque<Puppet> crowd;
  for (int host = 1; host <= 4; ++host)
    for (uint16_t port = 8000; port < 8004; ++port) {
      const std::string address = "10.0.5." + std::to_string(host);
      crowd.emplace_back(scene.world, scene.target.address(), port, address.c_str());
      if (crowd.size() <= 14) crowd.back().associate();
    }
  for (int i = 0; i < 4; ++i) {
    scene.world.advance(900ms);
    for (Puppet& peer : crowd) peer.send(peer.header(kRdProbe));
  }
  REQUIRE(scene.target.qp.peers().size() == 14);  // two places are for peers of its own choice
  const uint64_t before = scene.count("rd_associations");
  Puppet(scene.world, scene.target.address(), 8000, "10.0.6.1").associate();
  CHECK(scene.count("rd_associations") == before + 1);
  CHECK(scene.count("rd_forgotten") > 0);
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
                                           .sges = {scene.target.mr.sge(0, 100)},
                                           .destination = scene.puppet.address(),
                                           .remote = {5, 0}}));
  scene.world.settle();
  const auto datagrams = scene.puppet.take();
  REQUIRE_FALSE(datagrams.empty());
  const Segment request = read_segment(datagrams.back(), 24);
  const uint32_t sink = request.sink_stag;
  CHECK(request.sink_offset == 0);
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

TEST_CASE("rd: a reset must know the association, and a datagram sent in it") {
  Hostile scene;
  scene.target.post_receives(1, 100);
  scene.puppet.associate();
  REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 64));
  scene.world.settle();
  scene.puppet.take();
  uint64_t dropped = 0;
  const auto ignored = [&](auto&& change) {
    ReliableHeader reset = scene.puppet.header(kRdReset, 1);
    change(reset);
    scene.puppet.send(reset);
    CHECK(scene.count("drop_rd_association") == ++dropped);
  };
  ignored([](auto& h) { h.epoch += 1; });
  ignored([](auto& h) { h.peer_epoch += 1; });
  ignored([](auto& h) { h.peer_incarnation += 1; });
  ignored([](auto& h) { std::swap(h.epoch, h.peer_epoch); });
  ignored([](auto& h) { h.sequence += 1; });  // was not sent yet
  ignored([](auto& h) { h.sequence += 0x7FFFFFFF; });
  ignored([](auto& h) { h.sequence += 0x80000000; });
  ignored([](auto& h) { h.sequence = h.sequence == 1 ? 2 : 1; });  // a guess
  scene.puppet.send(scene.puppet.header(kRdData, 1), {.msn = 1, .payload = pattern(10, 1)});
  CHECK(scene.received() == 1);
  CHECK(drain(scene.target.send_cq).empty());
  scene.puppet.take();

  ReliableHeader reset = scene.puppet.header(kRdReset, 1);
  reset.flags = 1;  // broken
  scene.puppet.send(reset);
  CHECK(scene.count("drop_rd_association") == dropped);
  // Datagrams under way are repeated for a peer that knows which were delivered, and for no other.
  const bool remembers = GENERATE(false, true);
  scene.puppet.accept_open(remembers ? 2 : 0);
  const auto sent = scene.puppet.take_reliable();
  const auto done = drain(scene.target.send_cq);
  CHECK(std::ranges::count(sent, uint8_t{kRdData}, &ReliableHeader::kind) == (remembers ? 1 : 0));
  REQUIRE(done.size() == (remembers ? 0 : 1));
  if (!remembers) CHECK(done[0].status == WcStatus::peer_restarted);
}

TEST_CASE("rd: of all guesses at a reset's names and number none but the right one ends anything") {
  Hostile scene;
  scene.puppet.epoch = 0x55555555;
  scene.puppet.associate();
  REQUIRE_FALSE(scene.target.send(scene.puppet.address(), 0, 64));
  scene.world.settle();
  scene.puppet.take();
  ReliableHeader reset = scene.puppet.header(kRdReset, 1);
  const std::array<GuessedField, 4> fields{
      {{reset.epoch, 3}, {reset.peer_epoch, 3}, {reset.peer_incarnation, 3}, {0, 3}}};
  for_each_wrong_guess(fields, [&](const auto& guess) {
    ReliableHeader blind = reset;
    blind.epoch = static_cast<uint32_t>(guess[0]);
    blind.peer_epoch = static_cast<uint32_t>(guess[1]);
    blind.peer_incarnation = static_cast<uint32_t>(guess[2]);
    blind.sequence += static_cast<uint32_t>(guess[3]);  // only one was sent
    scene.puppet.send(blind);
  });
  CHECK(scene.count("drop_rd_association") == 4095);
  CHECK(scene.puppet.take_reliable().empty());
  CHECK(scene.opens_anew(reset.sequence));
}

TEST_CASE(
    "rd: a peer that knows no association answers with the number of the datagram that came") {
  Hostile scene;
  scene.puppet.associate();
  ReliableHeader stranger = scene.puppet.header(kRdProbe, 9);
  stranger.epoch += 1;
  scene.puppet.send(stranger);
  const auto answers = scene.puppet.take_reliable();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].kind == kRdReset);
  CHECK(answers[0].sequence == stranger.sequence);
  CHECK(answers[0].epoch == stranger.peer_epoch);
  CHECK(answers[0].peer_epoch == stranger.epoch);
}

TEST_CASE("rd: resets beyond those that may wait are left out and counted") {
  constexpr size_t kResets = 64;
  constexpr size_t kMore = 6;
  Hostile scene;
  scene.puppet.associate();
  ReliableHeader stranger = scene.puppet.header(kRdProbe, 9);
  stranger.epoch += 1;
  scene.puppet.send_together(stranger, kResets + kMore);
  CHECK(scene.puppet.take_reliable().size() == kResets);
  CHECK(scene.count("rd_resets_sent") == kResets);
  CHECK(scene.count("rd_resets_limited") == kMore);
  // They are asked for again, and there is room then.
  scene.puppet.send(stranger);
  CHECK(scene.puppet.take_reliable().size() == 1);
}

namespace {

/// The target opens, and the puppet sees its open.
struct Opened : Hostile {
  Opened() {
    REQUIRE_FALSE(target.send(puppet.address(), 0, 64));
    world.settle();
    const auto sent = puppet.take();
    REQUIRE(sent.size() == 1);
    open = read_reliable(sent[0]);
    REQUIRE(open.kind == kRdOpen);
    puppet.peer_incarnation = read_be32(sent[0], 4);
    puppet.peer_epoch = open.epoch;
    own_nonce = read_be64(open.content, 0);
  }
  /// Opens that come back for a Challenge.
  size_t opens_for(uint64_t nonce, uint32_t incarnation) {
    puppet.send(to_bytes(Control{.incarnation = incarnation,
                                 .type = kChallenge,
                                 .content = challenge_content(nonce, pattern(16, 1))}));
    size_t opens = 0;
    for (const ReliableHeader& one : puppet.take_reliable()) {
      REQUIRE(one.kind == kRdOpen);
      CHECK(one.content == challenge_content(nonce, pattern(16, 1)));
      CHECK(one.peer_incarnation == incarnation);
      ++opens;
    }
    return opens;
  }
  /// Datagrams that come back for an acceptance.
  std::vector<Bytes8> accept() {
    puppet.send(puppet.header(kRdAcknowledgement));
    return puppet.take();
  }

  ReliableHeader open;
  uint64_t own_nonce = 0;
};

}  // namespace

TEST_CASE("rd: a probe names the last datagram, and the reset that answers it repeats that") {
  SECTION("a Read waits for its response") {
    Hostile scene;
    scene.puppet.associate();
    REQUIRE_FALSE(scene.target.qp.post_read({.sges = {scene.target.mr.sge(0, 100)},
                                             .destination = scene.puppet.address(),
                                             .remote = {5, 0}}));
    scene.world.settle();
    REQUIRE(scene.puppet.take_reliable().size() == 1);
    scene.puppet.send(scene.puppet.header(kRdAcknowledgement, 0, 1));
    const uint32_t named = scene.probe().sequence;
    CHECK(named == scene.puppet.peer_number(1));
    CHECK_FALSE(scene.opens_anew(named + 1));
    CHECK(scene.count("drop_rd_association") == 1);
    CHECK(scene.opens_anew(named));
    CHECK(scene.count("drop_rd_association") == 1);
  }
  SECTION("nothing was sent yet, for the window is closed") {
    Opened scene;
    REQUIRE(scene.opens_for(scene.own_nonce, scene.puppet.incarnation) == 1);
    ReliableHeader acceptance = scene.puppet.header(kRdAcknowledgement);
    acceptance.window = 0;
    scene.puppet.send(acceptance);
    const uint32_t named = scene.probe().sequence;
    CHECK(named == scene.puppet.peer_number(0));
    CHECK_FALSE(scene.opens_anew(named + 1));
    CHECK(scene.count("drop_rd_association") == 1);
    CHECK(scene.opens_anew(named));
  }
}

TEST_CASE("rd: a Challenge must repeat the nonce of one's own open") {
  Opened scene;
  CHECK(scene.open.content == challenge_content(scene.own_nonce, Bytes8(16)));
  for (int bit = 0; bit < 64; ++bit)
    CHECK(scene.opens_for(scene.own_nonce ^ uint64_t{1} << bit, 9) == 0);
  CHECK(scene.opens_for(0, 9) == 0);
  CHECK(scene.count("drop_control") == 65);
  CHECK(scene.opens_for(scene.own_nonce, scene.puppet.incarnation) == 1);
  CHECK(scene.count("drop_control") == 65);
}

TEST_CASE("rd: nothing is accepted from an incarnation that no Challenge told") {
  Opened scene;
  const uint32_t own = scene.puppet.incarnation;
  for (const uint32_t incarnation : {own, 0U}) {  // before any Challenge
    scene.puppet.incarnation = incarnation;
    CHECK(scene.accept().empty());
    scene.puppet.incarnation = own;
  }
  CHECK(scene.count("drop_rd_association") == 2);
  CHECK(scene.opens_for(scene.own_nonce, scene.puppet.incarnation) == 1);
  scene.puppet.incarnation ^= 1;
  CHECK(scene.accept().empty());
  CHECK(scene.count("drop_rd_association") == 3);
  scene.puppet.incarnation ^= 1;
  const auto data = scene.accept();
  REQUIRE(data.size() == 1);
  const ReliableHeader header = read_reliable(data[0]);
  CHECK(header.kind == kRdData);
  CHECK(header.sequence == scene.puppet.peer_number(1));
  CHECK(header.acknowledged == scene.puppet.number(0));
}

TEST_CASE("rd: each peer is shown another incarnation, epoch and nonce") {
  Hostile scene;
  std::set<uint32_t> incarnations;
  std::set<uint32_t> epochs;
  std::set<uint64_t> nonces;
  for (uint16_t port = 8000; port < 8008; ++port) {
    Puppet one(scene.world, scene.target.address(), port);
    one.associate();
    incarnations.insert(one.peer_incarnation);
    epochs.insert(one.peer_epoch);
    Puppet other(scene.world, scene.target.address(), static_cast<uint16_t>(port + 100));
    REQUIRE_FALSE(scene.target.send(other.address(), 0, 1));
    scene.world.settle();
    nonces.insert(read_be64(other.take_reliable().at(0).content, 0));
  }
  // 2^-27 says otherwise of the first two.
  CHECK(incarnations.size() == 8);
  CHECK(epochs.size() == 8);
  CHECK(nonces.size() == 8);
}

TEST_CASE("rd: a skip gives up the message that it names, and no other") {
  Hostile scene;
  scene.target.post_receives(2, 100);
  scene.puppet.associate();
  const auto half = [&](uint32_t sequence, uint32_t msn, bool second) {
    scene.puppet.send(scene.puppet.header(kRdData, sequence), {.msn = msn,
                                                               .offset = second ? 10U : 0U,
                                                               .last = second,
                                                               .payload = pattern(10, sequence)});
  };
  uint32_t last = 3;
  SECTION("another message between the two segments of a Send") {
    struct Case {
      uint8_t kind;
      uint32_t number;
    };
    const auto [kind, number] =
        GENERATE(Case{kRdReadResponse, 3}, Case{kRdWriteRecord, 3}, Case{kRdReadRequest, 3},
                 Case{kRdSend, 2}, Case{kRdSend, 4});
    half(1, 3, false);
    scene.puppet.send(scene.puppet.skip(2, kind, number));
    CHECK(scene.received() == 0);
    half(3, 3, true);
    REQUIRE(scene.received() == 1);
    CHECK(same(scene.target.bytes(0, 10), pattern(10, 1)));
    CHECK(same(scene.target.bytes(10, 10), pattern(10, 3)));
  }
  SECTION("the Send itself, whose receive is free again") {
    half(1, 3, false);
    scene.puppet.send(scene.puppet.skip(2, kRdSend, 3));
    half(3, 4, false);
    half(4, 4, true);
    last = 4;
    const auto done = drain(scene.target.recv_cq);
    REQUIRE(done.size() == 1);
    CHECK(done[0].wr_id == 0);
    CHECK(same(scene.target.bytes(0, 10), pattern(10, 3)));
  }
  CHECK(scene.count("rd_refused") == 0);
  scene.world.advance(1ms);
  const auto answers = scene.puppet.take_reliable();
  REQUIRE_FALSE(answers.empty());
  CHECK(answers.back().acknowledged == scene.puppet.number(last));
}

TEST_CASE("rd: a failure comes after the sent part of its response, for which skips stand then") {
  Hostile scene;
  scene.puppet.window = 2;
  scene.puppet.associate();
  std::optional<MemoryRegion> region(std::in_place, scene.target.pd, std::span(scene.target.memory),
                                     kAllAccess);
  scene.puppet.send(scene.puppet.header(kRdData, 1), {.msn = 1,
                                                      .opcode = kReadRequest,
                                                      .sink_stag = 0x5151,
                                                      .read_length = 10000,
                                                      .source_stag = region->rkey(),
                                                      .source_offset = region->base()});
  const auto begun = scene.puppet.take_reliable();
  REQUIRE(begun.size() == 2);
  for (const ReliableHeader& one : begun) CHECK(one.kind == kRdData);
  region.reset();
  scene.puppet.window = 100;
  scene.puppet.send(scene.puppet.header(kRdAcknowledgement));
  auto sent = scene.puppet.take_reliable();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].kind == kRdFailure);
  CHECK(sent[0].sequence == scene.puppet.peer_number(3));
  CHECK(read_be32(sent[0].content, 0) == 0x5151);
  CHECK(read_be32(sent[0].content, 4) == 0x01000000);  // RDMAP, protection, invalid STag

  std::set<uint32_t> skipped;
  for (int i = 0; i < 100 && skipped.size() < 2; ++i) {
    scene.world.advance(100ms);
    for (const ReliableHeader& one : scene.puppet.take_reliable()) {
      CHECK(one.kind != kRdData);
      if (one.kind != kRdSkip) continue;
      CHECK(one.content == skip_content(kRdReadResponse, 0x5151));
      skipped.insert(one.sequence);
    }
    scene.puppet.send(
        scene.puppet.header(kRdAcknowledgement, 0, static_cast<uint32_t>(skipped.size())));
  }
  CHECK(skipped == std::set{scene.puppet.peer_number(1), scene.puppet.peer_number(2)});
}

TEST_CASE("rd: each Read Request has a sink of its own, and names it in what it asks for") {
  Hostile scene({.memory = 1 << 20});
  scene.puppet.associate();
  REQUIRE_FALSE(scene.target.qp.post_read({.sges = {scene.target.mr.sge(0, 1 << 20)},
                                           .destination = scene.puppet.address(),
                                           .remote = {5, 1000}}));
  scene.world.settle();
  std::set<uint32_t> sinks;
  uint64_t begin = 1000;
  for (const Bytes8& one : scene.puppet.take()) {
    const Segment request = read_segment(one, 24);
    CHECK(request.opcode == kReadRequest);
    CHECK(request.sink_offset == 0);
    CHECK(request.source_offset == begin);
    begin += request.read_length;
    sinks.insert(request.sink_stag);
  }
  CHECK(begin == 1000 + (1 << 20));
  CHECK(sinks.size() == 4);
}

TEST_CASE("rd: a skip for a Send does not end a Write-Record of the same number") {
  Hostile scene;
  MemoryRegion region(scene.target.pd, std::span(scene.target.memory), kAllAccess);
  scene.puppet.associate();
  const auto half = [&](uint32_t sequence, bool second) {
    scene.puppet.send(scene.puppet.header(kRdData, sequence),
                      {.msn = 3,
                       .offset = second ? 10U : 0U,
                       .last = second,
                       .payload = pattern(10, sequence),
                       .opcode = kWriteRecord,
                       .stag = region.rkey(),
                       .tagged_offset = region.base() + (second ? 10 : 0),
                       .message_length = 20});
  };
  const bool itself = GENERATE(false, true);
  half(1, false);
  scene.puppet.send(scene.puppet.skip(2, itself ? kRdWriteRecord : kRdSend, 3));
  half(3, true);
  const auto records = drain(scene.target.recv_cq);
  REQUIRE(records.size() == 1);
  CHECK(records[0].valid_bytes == (itself ? 10 : 20));
}

TEST_CASE("rd: random reliable datagrams of the association break nothing") {
  Hostile scene({.reliable = {.receive_window = 32}});
  MemoryRegion region(scene.target.pd, std::span(scene.target.memory), kAllAccess);
  scene.puppet.associate();
  Random random(77);
  for (int round = 0; round < 20000; ++round) {
    ReliableHeader header = scene.puppet.header(static_cast<uint8_t>(1 + random.below(6)));
    header = scene.puppet.header(header.kind, static_cast<uint32_t>(random.below(200)),
                                 static_cast<uint32_t>(random.below(100)));
    header.window = static_cast<uint16_t>(random.below(65536));
    if (header.kind == kRdFailure) header.content.resize(8);
    if (header.kind == kRdRefusal) header.content.resize(4);
    if (header.kind == kRdAcknowledgement) header.content.resize(8 * random.below(17));
    for (std::byte& byte : header.content) byte = static_cast<std::byte>(random.next());
    if (header.kind == kRdSkip)
      header.content = skip_content(static_cast<uint8_t>(1 + random.below(4)),
                                    static_cast<uint32_t>(random.below(4)));
    if (random.below(8) == 0)
      static_cast<void>(scene.target.send(scene.puppet.address(), 0, random.below(5000)));
    if (random.below(8) == 0) static_cast<void>(scene.target.post_recv(0, 0, 3000));
    if (random.below(20) == 0)
      static_cast<void>(
          scene.target.qp.post_read({.sges = {scene.target.mr.sge(0, random.below(600))},
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
