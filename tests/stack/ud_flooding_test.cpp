// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"
#include "stack/record_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// The effect of refused and incomplete messages, of one's own or forged, on those of honest
/// sources.

namespace {

/// Someone at an address of his own, who begins messages and never ends them.
class Beginner {
 public:
  explicit Beginner(Scene& scene) : scene_(scene) {}
  void begin() {
    const std::string host =
        "10.7." + std::to_string(count_ / 250) + "." + std::to_string(count_ % 250 + 1);
    ++count_;
    link_ = scene_.world.network->open(Address::parse(host, 4000));
    const auto datagram = to_bytes(scene_.half(1, false));
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{scene_.target.address(), {&piece, 1}};
    REQUIRE(link_->send({&outgoing, 1}).sent == 1);
    scene_.world.settle();
  }

 private:
  Scene& scene_;
  uint32_t count_ = 0;
  std::unique_ptr<llp::DatagramLink> link_;
};

constexpr uint32_t kFarAhead = 0x20000000;

}  // namespace

TEST_CASE("1,100 refused Sends with numbers far ahead close none of their source's own") {
  Scene scene;
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.whole(1));
  for (uint32_t i = 0; i < 1100; ++i)
    scene.send(scene.stranger, scene.whole(kFarAhead + i % 2 * 3000 + i, 101));
  CHECK(scene.count("drop_receive_too_small") == 1100);
  scene.send(scene.stranger, scene.whole(kFarAhead + 3000 + 1099, 50));  // refused, and over
  CHECK(scene.count("drop_late") == 1);
  scene.send(scene.stranger, scene.whole(2));
  scene.send(scene.stranger, scene.half(3, false));
  scene.send(scene.stranger, scene.half(3, true));
  CHECK(scene.received() == Ids{0, 1, 2});
}

TEST_CASE("Sends that were begun far ahead and given up close none of their source's own") {
  Scene scene({.datagram = {.message_timeout = 1ms, .closed_per_source = 16}});
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.whole(1));
  for (uint32_t i = 0; i < 100; ++i) {
    scene.send(scene.stranger, scene.half(kFarAhead + 5 * i, false));
    scene.world.advance(1ms);
  }
  CHECK(scene.count("message_timeouts") == 100);
  scene.send(scene.stranger, scene.half(kFarAhead + 5 * 99, true));
  CHECK(scene.count("drop_late") == 1);
  scene.send(scene.stranger, scene.whole(2));
  CHECK(scene.received() == Ids{0, 1});
}

TEST_CASE("incomplete Write-Records far ahead close none of their source's own") {
  RecordScene scene({.datagram = {.closed_per_source = 16, .record_timeout = 1ms}});
  scene.send(scene.whole(1, 100));
  for (uint32_t i = 0; i < 100; ++i) {
    scene.send(scene.part(kFarAhead + 5 * i, 0, 10, 20, 1000));
    scene.world.advance(1ms);
  }
  CHECK(scene.records().size() == 101);
  scene.send(scene.part(kFarAhead + 5 * 99, 10, 10, 20, 1000));
  CHECK(scene.count("drop_late") == 1);
  scene.send(scene.whole(2, 100, 200));
  CHECK(scene.records().size() == 1);
}

TEST_CASE("a flood of beginnings from strangers leaves a known source its Sends") {
  Scene scene({.capacity = {.max_recv_wr = 512}});
  scene.target.post_receives(512, 100);
  scene.send(scene.stranger, scene.whole(1));
  Beginner beginner(scene);
  for (uint32_t msn = 2; msn < 12; ++msn) {
    scene.send(scene.stranger, scene.half(msn, false));
    for (int i = 0; i < 100; ++i) beginner.begin();
    scene.send(scene.stranger, scene.half(msn, true));
  }
  CHECK(scene.received().size() == 11);
  CHECK(scene.count("messages_evicted") == 1000 - 64 + 1);
  CHECK(scene.count("drop_no_context") == 0);
}

TEST_CASE("in a flood of beginnings a newcomer's Send of two datagrams gets through") {
  Scene scene({.capacity = {.max_recv_wr = 512}});
  scene.target.post_receives(512, 100);
  Beginner beginner(scene);
  for (int i = 0; i < 640; ++i) beginner.begin();
  Stranger newcomer(scene.world);
  scene.send(newcomer, scene.half(1, false));
  for (int i = 0; i < 60; ++i) beginner.begin();
  scene.send(newcomer, scene.half(1, true));
  CHECK(scene.received().size() == 1);
}

TEST_CASE("open Sends of known sources give way to nobody") {
  Scene scene({.datagram = {.max_open_messages = 3}});
  scene.target.post_receives(64, 100);
  scene.send(scene.stranger, scene.whole(1));
  for (uint32_t msn = 2; msn < 5; ++msn) scene.send(scene.stranger, scene.half(msn, false));
  Beginner beginner(scene);
  for (int i = 0; i < 10; ++i) beginner.begin();
  CHECK(scene.count("drop_no_context") == 10);
  CHECK(scene.count("messages_evicted") == 0);
  for (uint32_t msn = 2; msn < 5; ++msn) scene.send(scene.stranger, scene.half(msn, true));
  CHECK(scene.received().size() == 4);
}

namespace {

/// Sources that have finished a Send, and open others: each incarnation at a port is one.
struct Shared : Scene {
  explicit Shared(uint32_t max_open, uint32_t per_source = 16)
      : Scene({.capacity = {.max_recv_wr = 512},
               .datagram = {.max_open_messages = max_open, .max_open_per_source = per_source}}) {
    target.post_receives(512, 100);
  }
  void send(Peer& from, const Segment& segment) {
    from.send(target.address(), segment);
    world.settle();
  }
  void prove(Peer& from, uint32_t incarnation) {
    send(from, with(incarnation, whole(1)));
    REQUIRE(received().size() == 1);
  }
  void begin(Peer& from, uint32_t incarnation, uint32_t msn) {
    send(from, with(incarnation, half(msn, false)));
  }
  bool ends(Peer& from, uint32_t incarnation, uint32_t msn) {
    send(from, with(incarnation, half(msn, true)));
    return received().size() == 1;
  }
  static Segment with(uint32_t incarnation, Segment segment) {
    segment.incarnation = incarnation;
    return segment;
  }

  Peer known{world};
};

}  // namespace

TEST_CASE("an address with many proven incarnations leaves a known source its Sends") {
  Shared scene(64);
  Peer hostile(scene.world, 0, "10.0.2.1");
  scene.prove(scene.known, 9);
  for (uint32_t incarnation = 1; incarnation <= 4; ++incarnation) scene.prove(hostile, incarnation);
  // A byte of each message now and then keeps them open.
  for (uint32_t tick = 0; tick < 40; ++tick) {
    for (uint32_t incarnation = 1; incarnation <= 4; ++incarnation)
      for (uint32_t msn = 2; msn < 18; ++msn)
        scene.send(hostile, {.incarnation = incarnation,
                             .msn = msn,
                             .offset = tick,
                             .last = false,
                             .payload = pattern(1, 1)});
    scene.begin(scene.known, 9, 2 + tick);
    scene.world.advance(50ms);
    CHECK(scene.ends(scene.known, 9, 2 + tick));
  }
}

TEST_CASE("proven sources of several addresses share the open Sends, whatever their ports") {
  Shared scene(9);
  std::deque<Peer> all;
  for (const char* host : {"10.0.2.1", "10.0.2.1", "10.0.3.1", "10.0.4.1"})
    scene.prove(all.emplace_back(scene.world, uint16_t{0}, host), 1);
  for (uint32_t msn = 2; msn < 8; ++msn) scene.begin(all[0], 1, msn);
  for (uint32_t msn = 2; msn < 5; ++msn) scene.begin(all[1], 1, msn);
  CHECK(scene.count("messages_evicted") == 0);
  // The second address gets four of nine, as many as leave the first one no fewer.
  for (uint32_t msn = 2; msn < 10; ++msn) scene.begin(all[2], 1, msn);
  CHECK(scene.count("messages_evicted") == 4);
  CHECK(scene.count("drop_no_context") == 4);
  // The third gets three, and each of the others keeps as many.
  for (uint32_t msn = 2; msn < 10; ++msn) scene.begin(all[3], 1, msn);
  CHECK(scene.count("messages_evicted") == 7);
  CHECK(scene.count("drop_no_context") == 9);
  for (uint32_t msn = 2; msn < 5; ++msn) CHECK(scene.ends(all[3], 1, msn));
  // Of the first address those are left that were begun last.
  for (uint32_t msn = 2; msn < 8; ++msn) CHECK_FALSE(scene.ends(all[0], 1, msn));
  for (uint32_t msn = 2; msn < 5; ++msn) CHECK(scene.ends(all[1], 1, msn));
  // A message that ended has freed its place.
  for (uint32_t msn = 20; msn < 24; ++msn) scene.begin(all[0], 1, msn);
  for (uint32_t msn = 20; msn < 24; ++msn) CHECK(scene.ends(all[0], 1, msn));
}

TEST_CASE("of an address that has most the message gives way that was longest without progress") {
  Shared scene(3);
  Peer other(scene.world, 0, "10.0.2.1");
  scene.prove(scene.known, 1);
  scene.prove(other, 1);
  for (uint32_t msn = 2; msn < 5; ++msn) scene.begin(scene.known, 1, msn);
  Segment more = Shared::with(1, scene.half(2, true));
  more.payload.resize(5);
  more.last = false;
  scene.send(scene.known, more);
  scene.begin(other, 1, 2);
  CHECK(scene.ends(other, 1, 2));
  CHECK_FALSE(scene.ends(scene.known, 1, 3));
  CHECK(scene.ends(scene.known, 1, 4));
}

TEST_CASE("an address with many proven incarnations leaves a known source its Write-Records") {
  RecordScene scene({.datagram = {.max_open_records = 16, .max_open_records_per_source = 4}});
  Peer hostile(scene.world, 0, "10.0.2.1");
  const auto of = [&](uint32_t incarnation, Segment segment) {
    segment.incarnation = incarnation;
    hostile.send(scene.target.address(), segment);
    scene.world.settle();
  };
  for (uint32_t incarnation = 1; incarnation <= 8; ++incarnation)
    of(incarnation, scene.whole(1, 10));
  scene.send(scene.whole(1, 10));
  scene.send(scene.part(2, 0, 10, 20));
  scene.send(scene.part(3, 0, 10, 20, 100));
  static_cast<void>(scene.records());
  for (uint32_t msn = 2; msn < 20; ++msn)
    for (uint32_t incarnation = 1; incarnation <= 8; ++incarnation) {
      of(incarnation, scene.part(msn, 0, 10, 20, 1000));
      static_cast<void>(scene.records());
    }
  // Its next one displaces none of its own.
  scene.send(scene.part(4, 0, 10, 20, 200));
  static_cast<void>(scene.records());
  scene.send(scene.part(2, 10, 10, 20));
  scene.send(scene.part(3, 10, 10, 20, 100));
  scene.send(scene.part(4, 10, 10, 20, 200));
  const auto whole = scene.records();
  REQUIRE(whole.size() == 3);
  for (const WorkCompletion& record : whole) CHECK(record.validity.complete());
}

TEST_CASE("a message that gave way is over, and its receive is the next one again") {
  Scene scene({.datagram = {.max_open_messages = 1}});
  scene.target.post_receives(4, 100);
  Stranger other(scene.world);
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(other, scene.half(1, false));
  CHECK(scene.count("messages_evicted") == 1);
  scene.send(scene.stranger, scene.half(1, true));
  CHECK(scene.count("drop_late") == 1);
  scene.send(other, scene.half(1, true));
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("in a full table of records those of strangers give way before those of known sources") {
  RecordScene scene({.datagram = {.max_open_records = 4}});
  Stranger known(scene.world);
  scene.Scene::send(known, scene.whole(1, 10));
  CHECK(scene.records().size() == 1);
  scene.Scene::send(known, scene.part(2, 0, 10, 20));
  std::deque<Stranger> strangers;
  for (uint32_t i = 0; i < 50; ++i) {
    Stranger& stranger = strangers.emplace_back(scene.world);
    scene.Scene::send(stranger, scene.part(1, 0, 10, 20, 1000));
    static_cast<void>(scene.records());
  }
  CHECK(scene.count("records_evicted") == 50 - 3);
  scene.Scene::send(known, scene.part(2, 10, 10, 20));
  const auto whole = scene.records();
  REQUIRE(whole.size() == 1);
  CHECK(whole[0].validity.complete());
}

TEST_CASE("sources are forgotten when their time is over, though no other one comes") {
  Scene scene({.datagram = {.source_timeout = 10s}});
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.whole(1));
  scene.world.advance(10s - 1ns);
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.count("drop_late") == 1);
  scene.world.advance(10s);
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.received() == Ids{0, 1});
}
