// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// The one completion that is there.
WorkCompletion only(std::vector<WorkCompletion> completions) {
  REQUIRE(completions.size() == 1);
  return completions[0];
}

}  // namespace

TEST_CASE("a Read that nothing answers times out, with an empty map") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000, 7));
  scene.world.advance(99ms);
  CHECK(scene.completions().empty());
  scene.world.advance(1ms);
  const WorkCompletion completion = only(scene.completions());
  CHECK(completion.wr_id == 7);
  CHECK(completion.status == WcStatus::timeout);
  CHECK(completion.opcode == WcOpcode::rdma_read);
  CHECK(completion.valid_bytes == 0);
  CHECK(completion.validity.length() == 1000);
  CHECK(completion.validity.first_gap() == ValidityMap::Range{0, 1000});
  CHECK(scene.requests().size() == 1);
  CHECK(scene.count("read_timeouts") == 1);
}

TEST_CASE("a Read of no bytes that nothing answers times out as well") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(0));
  scene.world.advance(100ms);
  CHECK(only(scene.completions()).status == WcStatus::timeout);
}

TEST_CASE("a Read times out when nothing new came for its timeout, with a map of what did") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  scene.answer(request, 100, 50);
  scene.world.advance(90ms);
  scene.answer(request, 700, 100);
  scene.world.advance(90ms);
  scene.answer(request, 700, 100);  // nothing new
  CHECK(scene.completions().empty());
  scene.world.advance(10ms);
  const WorkCompletion completion = only(scene.completions());
  CHECK(completion.status == WcStatus::timeout);
  CHECK(completion.valid_bytes == 150);
  CHECK(valid_ranges(completion) == Ranges{{100, 50}, {700, 100}});
  CHECK(scene.holds({{100, 50}, {700, 100}}));
}

TEST_CASE("a Read's own timeout, deadline and retries go before those of its queue pair") {
  ScriptedScene scene({.memory = 1 << 20, .datagram = {.read = {.timeout = 50ms, .retries = 3}}});
  REQUIRE_FALSE(scene.post(1000, 1, {.timeout = 20ms, .retries = 0}));
  REQUIRE_FALSE(scene.post(1000, 2, {.timeout = 70ms, .retries = 0}));
  REQUIRE_FALSE(scene.post(1000, 3, {.deadline = 30ms, .retries = 0}));
  REQUIRE_FALSE(scene.post(1000, 4, {.retries = 1}));
  CHECK(scene.requests().size() == 4);
  scene.world.advance(20ms);
  CHECK(only(scene.completions()).wr_id == 1);
  scene.world.advance(30ms);
  CHECK(scene.requests().size() == 1);  // of 4; 3 waits for 2 to be reported
  scene.world.advance(20ms);
  CHECK(scene.completions().size() == 2);
  scene.world.advance(30ms);
  CHECK(only(scene.completions()).wr_id == 4);
}

TEST_CASE("a Read's deadline ends it however much is coming") {
  const bool of_queue_pair = GENERATE(false, true);
  DatagramOptions options;
  if (of_queue_pair) options.read.deadline = 200ms;
  ScriptedScene scene({.memory = 1 << 20, .datagram = options});
  REQUIRE_FALSE(scene.post(1000, 0, {.deadline = of_queue_pair ? 0ms : 200ms, .retries = 100}));
  const Segment request = scene.requests().at(0);
  for (uint32_t i = 0; i < 10; ++i) {
    CHECK(scene.completions().empty());
    scene.answer(request, i * 10, 10);
    scene.world.advance(20ms);
  }
  const WorkCompletion completion = only(scene.completions());
  CHECK(completion.status == WcStatus::timeout);
  CHECK(valid_ranges(completion) == Ranges{{0, 100}});
}

TEST_CASE("a retry of a Read asks for the gaps, and for nothing else") {
  ScriptedScene scene({.memory = 1 << 20, .datagram = {.read = {.retries = 1, .window = 4}}});
  REQUIRE_FALSE(scene.post(1000));
  const Segment first = scene.requests().at(0);
  scene.answer(first, 0, 100);
  scene.answer(first, 200, 300);
  scene.answer(first, 600, 300);
  scene.world.advance(100ms);
  CHECK(scene.completions().empty());
  const auto again = scene.requests();
  REQUIRE(again.size() == 3);
  Ranges asked;
  for (const Segment& request : again) {
    asked.push_back({request.source_offset - 5000, request.read_length});
    CHECK(request.sink_offset != first.sink_offset);
    CHECK(request.q_key != first.q_key);  // the nonce
    CHECK(request.source_stag == first.source_stag);
    CHECK(request.sink_stag != first.sink_stag);
    CHECK(request.msn != first.msn);
  }
  CHECK(asked == Ranges{{100, 100}, {500, 100}, {900, 100}});
  CHECK(scene.count("read_retries") == 3);
  scene.answer(first, 100, 100);  // too late
  CHECK(scene.count("drop_response") == 1);
  for (const Segment& request : again) scene.answer_all(request);
  const WorkCompletion completion = only(scene.completions());
  CHECK(completion.status == WcStatus::success);
  CHECK(completion.validity.complete());
  CHECK(scene.holds({{0, 1000}}));
}

TEST_CASE("a Read ends when its retries are used up, with all that came in any of them") {
  ScriptedScene scene({.memory = 1 << 20, .datagram = {.read = {.retries = 2, .window = 4}}});
  REQUIRE_FALSE(scene.post(1000));
  for (size_t attempt = 1; attempt <= 3; ++attempt) {
    const auto requests = scene.requests();
    REQUIRE(requests.size() == attempt);  // as many gaps
    scene.answer(requests.back(), 10, 10);
    scene.world.advance(99ms);
    CHECK(scene.completions().empty());
    scene.world.advance(1ms);
  }
  CHECK(scene.requests().empty());
  const WorkCompletion completion = only(scene.completions());
  CHECK(completion.status == WcStatus::timeout);
  CHECK(valid_ranges(completion) == Ranges{{10, 10}, {30, 10}, {50, 10}});
  CHECK(scene.holds({{10, 10}, {30, 10}, {50, 10}}));
  CHECK(scene.count("read_timeouts") == 1);
}

TEST_CASE("a lost end of a part holds a Read up for no time where later parts come") {
  ReadScene scene;
  scene.get_acquainted();
  uint64_t responses = 0;
  scene.from_target.lose = [&](uint64_t, ConstBytes datagram) {
    const bool end = is_response(datagram) && last_of(datagram);
    return end && ++responses < 4;  // the ends of the first three of four parts
  };
  CHECK(scene.read(1 << 20).empty());
  CHECK(scene.from_reader.requests().size() == 4);
  scene.world.advance(100ms);
  const WorkCompletion completion = only(drain(scene.reader.send_cq));
  CHECK(completion.status == WcStatus::timeout);
  REQUIRE(completion.validity.range_count() == 4);
  for (const auto [offset, length] : completion.validity.gaps()) {
    CHECK((offset + length) % 262144 == 0);
    CHECK(length < 1446);
    CHECK(scene.arrived(262144 - length, offset + length - 262144));
  }
}

TEST_CASE("a Read goes on with what is next where all requests under way are lost") {
  ReadScene scene;
  scene.get_acquainted();
  uint64_t requests = 0;
  scene.from_reader.lose = [&](uint64_t, ConstBytes) { return ++requests <= 2; };
  CHECK(scene.read(1 << 20).empty());
  CHECK(scene.from_reader.requests().size() == 2);
  scene.world.advance(25ms);
  CHECK(scene.from_reader.requests().size() == 4);
  scene.world.advance(99ms);
  CHECK(drain(scene.reader.send_cq).empty());
  scene.world.advance(1ms);
  const WorkCompletion completion = only(drain(scene.reader.send_cq));
  CHECK(completion.status == WcStatus::timeout);
  CHECK(valid_ranges(completion) == Ranges{{1 << 19, 1 << 19}});
  CHECK(scene.arrived(1 << 19, 1 << 19));
}

TEST_CASE("no more of a Read is under way than its window says") {
  const uint32_t window = GENERATE(1U, 2U, 3U);
  ScriptedScene scene({.memory = 2 << 20, .datagram = {.read = {.window = window}}});
  REQUIRE_FALSE(scene.post(2 << 20));
  auto open = scene.requests();
  size_t asked = 0;
  while (!open.empty()) {
    CHECK(open.size() == std::min<size_t>(window, 8 - asked));
    ++asked;
    scene.answer_all(open.front());
    open.erase(open.begin());
    for (const Segment& request : scene.requests()) open.push_back(request);
  }
  CHECK(asked == 8);
  CHECK(only(scene.completions()).status == WcStatus::success);
}

TEST_CASE("no more Reads are under way than may be, and further ones wait") {
  ScriptedScene scene({.memory = 1 << 20, .datagram = {.read = {.max_outstanding = 3}}});
  for (uint64_t i = 0; i < 5; ++i) REQUIRE_FALSE(scene.post(100, i));
  auto requests = scene.requests();
  REQUIRE(requests.size() == 3);
  scene.answer_all(requests[1]);  // any of them
  CHECK(scene.requests().size() == 1);
  CHECK(scene.completions().empty());  // in the order of posting
  scene.answer_all(requests[0]);
  CHECK(scene.requests().size() == 1);
  CHECK(scene.completions().size() == 2);
  scene.world.advance(100ms);
  CHECK(scene.completions().size() == 3);
}

TEST_CASE("a Read that waits for its target to answer earlier ones does not time out meanwhile") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000, 1));
  REQUIRE_FALSE(scene.post(1000, 2, {}, 2000));
  const auto requests = scene.requests();
  REQUIRE(requests.size() == 2);
  for (uint32_t i = 0; i < 10; ++i) {
    scene.world.advance(60ms);
    scene.answer(requests[0], i * 100, 100);
  }
  CHECK(only(scene.completions()).status == WcStatus::success);
  scene.world.advance(99ms);
  CHECK(scene.completions().empty());
  scene.world.advance(1ms);
  CHECK(only(scene.completions()).status == WcStatus::timeout);
}

TEST_CASE("the retries of a Read give those after it no more time") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000, 1, {.retries = 5}));
  REQUIRE_FALSE(scene.post(1000, 2, {.retries = 0}));
  scene.world.advance(99ms);
  CHECK(scene.count("read_timeouts") == 0);
  scene.world.advance(1ms);
  CHECK(scene.count("read_timeouts") == 1);  // reported after the other
  for (int i = 0; i < 5; ++i) scene.world.advance(100ms);
  CHECK(scene.completions().size() == 2);
}

TEST_CASE("a Read from another target times out however busy the first one is") {
  ScriptedScene scene;
  Peer other(scene.world, 0, "10.0.1.10");
  REQUIRE_FALSE(scene.post(1000, 1));
  const Sge sge = scene.reader.mr.sge(2000, 100);
  REQUIRE_FALSE(scene.reader.qp.post_read(
      {.wr_id = 2, .sges = {sge}, .destination = other.address(), .remote = {1, 2}}));
  scene.world.settle();
  const Segment request = scene.requests().at(0);
  const bool completes = GENERATE(true, false);
  scene.world.advance(60ms);
  scene.answer(request, 0, completes ? 1000 : 100);
  scene.world.advance(40ms);
  scene.answer(request, 100, 900);
  const auto completions = scene.completions();
  REQUIRE(completions.size() == 2);
  CHECK(completions[0].status == WcStatus::success);
  CHECK(completions[1].status == WcStatus::timeout);
}

TEST_CASE("Sends after a Read are sent while it is under way, and complete after it") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000, 1));
  REQUIRE_FALSE(scene.reader.send(scene.target.address(), 0, 10, 2));
  scene.world.settle();
  const auto sent = scene.requests();
  REQUIRE(sent.size() == 2);
  CHECK(sent[1].opcode == 3);
  CHECK(scene.completions().empty());
  scene.answer_all(sent[0]);
  const auto completions = scene.completions();
  REQUIRE(completions.size() == 2);
  CHECK(completions[0].wr_id == 1);
  CHECK(completions[1].wr_id == 2);
}
