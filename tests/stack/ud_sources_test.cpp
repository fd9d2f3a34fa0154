// SPDX-License-Identifier: Apache-2.0
#include "stack/ud_scene.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("a restarted peer is a new peer: its messages are delivered again") {
  Scene scene;
  scene.target.post_receives(4, 100);
  Segment segment = scene.whole(1);
  scene.send(scene.stranger, segment);
  scene.send(scene.stranger, segment);
  CHECK(scene.received() == Ids{0});
  segment.incarnation = 2;
  scene.send(scene.stranger, segment);
  CHECK(scene.received() == Ids{1});
}

TEST_CASE("a segment of the peer's old life does not complete a message of its new one") {
  Scene scene;
  scene.target.post_receives(8, 100);
  Segment first = scene.half(1, false);
  Segment second = scene.half(1, true);
  second.incarnation = 2;
  scene.send(scene.stranger, first);
  scene.send(scene.stranger, second);
  CHECK(scene.received().empty());
}

TEST_CASE("a queue pair that is reset and brought back is a new peer") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  b.post_receives(8, 100);
  REQUIRE_FALSE(a.send(b.address(), 0, 10));
  world.settle();
  for (int life = 0; life < 3; ++life) {
    a.qp.modify(QpState::reset);
    a.qp.modify(QpState::init);
    a.qp.modify(QpState::rts);
    REQUIRE_FALSE(a.send(b.address(), 0, 10));
    world.settle();
  }
  CHECK(drain(b.recv_cq).size() == 4);
}

TEST_CASE("sources that differ in address or port alone are kept apart") {
  Scene scene;
  scene.target.post_receives(8, 100);
  Stranger other(scene.world);
  REQUIRE(other.address().host() == scene.stranger.address().host());
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(other, scene.half(1, true));
  CHECK(scene.received().empty());
  scene.send(other, scene.whole(2));
  scene.send(scene.stranger, scene.whole(2));
  CHECK(scene.received() == Ids{2, 3});
}

TEST_CASE("an open message is completed however many later ones its source has ended meanwhile") {
  // Only the newest 1,024 ended ones are remembered; an older message counts as ended, unless it is
  // open.
  Scene scene;
  scene.target.post_receives(64, 100);
  scene.send(scene.stranger, scene.half(0, false));  // holds receive 0
  for (uint32_t msn = 2; msn < 3000; ++msn) {
    scene.send(scene.stranger, scene.whole(msn));
    for (uint64_t id : scene.received()) REQUIRE_FALSE(scene.target.post_recv(id, id * 100, 100));
  }
  scene.send(scene.stranger, scene.whole(1));  // never seen, but too old to tell
  CHECK(scene.count("drop_late") == 1);
  scene.send(scene.stranger, scene.half(0, true));
  CHECK(scene.received() == Ids{0});
  scene.send(scene.stranger, scene.half(0, true));
  CHECK(scene.count("drop_late") == 2);
}

TEST_CASE("the source that was silent longest makes room for a new one, unless a message is open") {
  Scene scene({.datagram = {.max_sources = 2}});
  scene.target.post_receives(32, 100);
  Stranger second(scene.world);
  Stranger third(scene.world);
  scene.send(scene.stranger, scene.whole(1));
  scene.send(second, scene.whole(1));
  scene.send(scene.stranger, scene.whole(2));  // now `second` is the silent one
  scene.send(third, scene.whole(1));           // takes its place
  CHECK(scene.received().size() == 4);
  scene.send(scene.stranger, scene.whole(2));
  CHECK(scene.count("drop_late") == 1);  // still known
  scene.send(second, scene.whole(1));    // forgotten: looks new, and `third` goes
  CHECK(scene.received().size() == 1);

  scene.send(scene.stranger, scene.half(10, false));
  scene.send(second, scene.half(10, false));
  scene.send(third, scene.whole(9));
  CHECK(scene.count("drop_sources_full") == 1);
  scene.send(second, scene.half(10, true));
  CHECK(scene.received().size() == 1);
  scene.send(third, scene.whole(9));
  CHECK(scene.received().size() == 1);
  scene.send(scene.stranger, scene.half(10, true));  // its open message was spared
  CHECK(scene.received().size() == 1);
}

TEST_CASE("a source that was silent for a minute is forgotten") {
  Scene scene;
  scene.target.post_receives(8, 100);
  Stranger other(scene.world);
  scene.send(scene.stranger, scene.whole(1));
  scene.world.advance(59s);
  scene.send(other, scene.whole(1));
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.count("drop_late") == 1);
  scene.world.advance(60s);
  Stranger third(scene.world);
  scene.send(third, scene.whole(1));
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.count("drop_late") == 1);
  CHECK(scene.received().size() == 4);
}

TEST_CASE("a source with an open message is not forgotten, however long it is silent") {
  Scene scene({.datagram = {.message_timeout = 200s}});
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(61s);
  Stranger other(scene.world);
  scene.send(other, scene.whole(1));
  scene.send(scene.stranger, scene.half(1, true));
  CHECK(scene.received() == Ids{1, 0});
}

TEST_CASE("a queue pair that was reset has forgotten what it received before") {
  Scene scene;
  scene.target.post_receives(2, 100);
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.received() == Ids{0});
  scene.target.qp.modify(QpState::reset);
  scene.target.qp.modify(QpState::init);
  scene.target.qp.modify(QpState::rts);
  scene.target.post_receives(2, 100);
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.received() == Ids{0});
}
