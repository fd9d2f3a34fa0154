// SPDX-License-Identifier: Apache-2.0
#include "stack/ud_scene.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("a message that never becomes whole gives its receive back, to the head of the queue") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(4, 100);
  Stranger other(scene.world);
  scene.send(scene.stranger, scene.half(1, false));  // holds receive 0
  scene.send(other, scene.whole(1));
  CHECK(scene.received() == Ids{1});
  scene.world.advance(100ms - 1ns);
  CHECK(scene.count("message_timeouts") == 0);
  scene.world.advance(1ns);
  CHECK(scene.count("message_timeouts") == 1);
  CHECK(scene.target.qp.query().posted_receives == 3);
  scene.send(other, scene.whole(2));
  scene.send(other, scene.whole(3));
  CHECK(scene.received() == Ids{0, 2});
}

TEST_CASE("segments of a message that timed out are late, and not placed") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(100ms);
  const std::vector<std::byte> before = scene.target.memory;
  scene.send(scene.stranger, scene.half(1, true));
  scene.send(scene.stranger, scene.half(1, false));
  CHECK(scene.received().empty());
  CHECK(scene.count("drop_late") == 2);
  CHECK(scene.target.memory == before);
}

TEST_CASE("the timeout counts from the last new bytes, repeated ones do not prolong it") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(4, 100);
  const auto piece = [](uint32_t offset, bool last) {
    return Segment{.msn = 1, .offset = offset, .last = last, .payload = pattern(10, offset)};
  };
  scene.send(scene.stranger, piece(0, false));
  scene.world.advance(99ms);
  scene.send(scene.stranger, piece(10, false));
  scene.world.advance(99ms);
  scene.send(scene.stranger, piece(10, false));
  CHECK(scene.count("drop_duplicate") == 1);
  CHECK(scene.count("message_timeouts") == 0);
  scene.world.advance(1ms);
  CHECK(scene.count("message_timeouts") == 1);
  scene.send(scene.stranger, piece(20, true));
  CHECK(scene.received().empty());
}

TEST_CASE("the end of a message does not prolong its timeout where it brings no bytes") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(99ms);
  scene.send(scene.stranger, Segment{.msn = 1, .offset = 20, .last = true, .payload = {}});
  scene.world.advance(1ms - 1ns);
  CHECK(scene.count("message_timeouts") == 0);
  scene.world.advance(1ns);
  CHECK(scene.count("message_timeouts") == 1);
}

TEST_CASE("of several open messages each has its own timeout") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(40ms);
  scene.send(scene.stranger, scene.half(2, false));
  scene.world.advance(40ms);
  scene.send(scene.stranger, scene.half(3, false));
  scene.world.advance(20ms);
  CHECK(scene.count("message_timeouts") == 1);
  scene.send(scene.stranger, scene.half(2, true));
  scene.world.advance(80ms);
  CHECK(scene.count("message_timeouts") == 2);
  CHECK(scene.received() == Ids{1});
}

TEST_CASE("a message that goes on does not keep another one alive") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(scene.stranger, scene.half(2, false));
  scene.world.advance(60ms);
  scene.send(scene.stranger, {.msn = 1, .offset = 10, .last = false, .payload = pattern(10, 1)});
  scene.world.advance(60ms);
  CHECK(scene.count("message_timeouts") == 1);
  scene.send(scene.stranger, scene.half(2, true));
  CHECK(scene.count("drop_late") == 1);
  scene.send(scene.stranger, {.msn = 1, .offset = 20, .last = true, .payload = {}});
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("a message timeout without end never comes, and costs no steps") {
  Scene scene({.datagram = {.message_timeout = Duration::max()}});
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(24h);
  CHECK(scene.device.progress() == 0);
  CHECK(scene.count("message_timeouts") == 0);
  scene.send(scene.stranger, scene.half(1, true));
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("incomplete messages hold at most half of the receives") {
  Scene scene;
  scene.target.post_receives(8, 100);
  std::deque<Stranger> strangers;
  for (int i = 0; i < 5; ++i) strangers.emplace_back(scene.world);
  for (Stranger& stranger : strangers) scene.send(stranger, scene.half(1, false));
  CHECK(scene.count("messages_evicted") == 1);  // of the first, whose receive is the next one
  // Messages of one segment may use the other half.
  Stranger other(scene.world);
  for (uint32_t msn = 0; msn < 4; ++msn) scene.send(other, scene.whole(msn));
  CHECK(scene.received() == Ids{4, 5, 6, 7});
  for (size_t i = 1; i < 5; ++i) scene.send(strangers[i], scene.half(1, true));
  CHECK(scene.received() == Ids{1, 2, 3, 0});
  // Those of sources that have finished messages hold their half against strangers, and newer ones
  // of their own.
  scene.target.post_receives(4, 100);
  for (size_t i = 1; i < 4; ++i) scene.send(strangers[i], scene.half(2, false));
  CHECK(scene.count("drop_share") == 1);
  scene.send(strangers[0], scene.half(2, false));
  CHECK(scene.count("drop_share") == 2);
  scene.send(strangers[1], scene.half(2, true));
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("a single posted receive may be held by an incomplete message") {
  Scene scene;
  scene.target.post_receives(1, 100);
  scene.send(scene.stranger, scene.half(1, true));
  scene.send(scene.stranger, scene.half(1, false));
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("one source cannot hold more than its share, another gets through") {
  Scene scene({.datagram = {.max_open_per_source = 2}});
  scene.target.post_receives(64, 100);
  for (uint32_t msn = 0; msn < 10; ++msn) scene.send(scene.stranger, scene.half(msn, false));
  CHECK(scene.count("drop_share") == 8);
  Stranger honest(scene.world);
  scene.send(honest, scene.half(1, false));
  scene.send(honest, scene.half(1, true));
  CHECK(scene.received() == Ids{2});
  CHECK(scene.count("drop_share") == 8);
  // Its single segments are not held up by its own open messages.
  scene.send(scene.stranger, scene.whole(100));
  CHECK(scene.received() == Ids{3});
}

TEST_CASE(
    "where other queue pairs hold the share of a shared receive queue, a message is dropped") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  CompletionQueue cq(device, 64);
  SharedReceiveQueue srq(pd, {.max_wr = 16, .max_sge = 1});
  std::vector<std::byte> memory(400);
  const MemoryRegion mr(pd, std::span(memory));
  for (uint64_t i = 0; i < 4; ++i) {
    const Sge sge = mr.sge(100 * i, 100);
    REQUIRE_FALSE(srq.post_recv({.wr_id = i, .sges = sge}));
  }
  const QueuePair a(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq, .srq = srq});
  const QueuePair b(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq, .srq = srq});
  Stranger proven(world), other(world);
  const auto begin = [&](Stranger& from, const QueuePair& to, uint32_t msn) {
    from.send(to.address(),
              Segment{.msn = msn, .offset = 0, .last = false, .payload = pattern(10, msn)});
    world.settle();
  };
  proven.send(b.address(), Segment{.msn = 1, .payload = pattern(10, 1)});
  world.settle();
  CHECK(drain(cq).size() == 1);
  begin(other, a, 1);
  REQUIRE(srq.query().posted == 2);
  begin(proven, b, 2);
  CHECK(device.counter("drop_share") == 1);
  CHECK(device.counter("messages_evicted") == 0);
  CHECK(srq.query().posted == 2);
}

TEST_CASE("no more messages are open than the queue pair allows") {
  Scene scene({.datagram = {.max_open_messages = 3}});
  scene.target.post_receives(64, 100);
  scene.send(scene.stranger, scene.whole(100));  // else its older ones would give way
  CHECK(scene.received() == Ids{0});
  REQUIRE_FALSE(scene.target.post_recv(0, 0, 100));
  for (uint32_t msn = 0; msn < 5; ++msn) scene.send(scene.stranger, scene.half(msn, false));
  CHECK(scene.count("drop_no_context") == 2);
  for (uint32_t msn = 0; msn < 3; ++msn) scene.send(scene.stranger, scene.half(msn, true));
  CHECK(scene.received() == Ids{1, 2, 3});
  for (uint32_t msn = 10; msn < 13; ++msn) {
    scene.send(scene.stranger, scene.half(msn, false));
    scene.send(scene.stranger, scene.half(msn, true));
  }
  CHECK(scene.received() == Ids{4, 5, 6});
}

TEST_CASE("without a posted receive messages are dropped, counted and not remembered") {
  Scene scene;
  scene.send(scene.stranger, scene.whole(1));
  scene.send(scene.stranger, scene.half(2, false));
  CHECK(scene.count("drop_no_receive") == 2);
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.whole(1));
  scene.send(scene.stranger, scene.half(2, false));
  scene.send(scene.stranger, scene.half(2, true));
  CHECK(scene.received() == Ids{0, 1});
}
