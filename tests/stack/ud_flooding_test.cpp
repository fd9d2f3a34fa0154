// SPDX-License-Identifier: Apache-2.0
#include "stack/record_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// What refused and incomplete messages, of one's own or forged, do to those of honest sources.

namespace {

/// Someone at an address of his own, who begins messages and never ends them.
class Beginner {
 public:
  explicit Beginner(Scene& scene) : scene_(scene) {}
  void begin() {
    const std::string host = "10.7." + std::to_string(count_ / 250) + "." +
                             std::to_string(count_ % 250 + 1);
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
