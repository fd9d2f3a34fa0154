// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

PartyOptions with_memory(size_t bytes) { return {.memory = bytes}; }

}  // namespace

TEST_CASE("a response that comes late touches nothing") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  const bool completed = GENERATE(true, false);
  if (completed)
    scene.answer_all(request);
  else
    scene.world.advance(100ms);
  REQUIRE(scene.completions().size() == 1);
  const auto before = scene.reader.memory;
  Segment late = ScriptedScene::part(request, 0, 1000);
  late.payload.assign(1000, std::byte{0xEE});
  scene.answer(late);
  // Nor when other Reads are under way.
  REQUIRE_FALSE(scene.post(1000));
  scene.answer(late);
  CHECK(scene.count("drop_response") == 2);
  CHECK(scene.reader.memory == before);
}

TEST_CASE("a response that comes twice is placed once") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  scene.answer(request, 0, 300);
  Segment again = ScriptedScene::part(request, 100, 200);
  again.payload.assign(200, std::byte{0xEE});
  scene.answer(again);
  CHECK(scene.count("drop_duplicate") == 1);
  CHECK(scene.holds({{0, 300}}));
  scene.answer(request, 300, 700);
  CHECK(scene.completions().size() == 1);
  CHECK(scene.holds({{0, 1000}}));
}

TEST_CASE("a part of a Read that is complete takes no more responses") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(300000));
  const auto requests = scene.requests();
  REQUIRE(requests.size() == 2);
  scene.answer_all(requests[1]);
  scene.answer(requests[1], 0, 100);
  CHECK(scene.count("drop_response") == 1);
  CHECK(scene.completions().empty());
}

TEST_CASE("a response from anywhere but the address that was asked touches nothing") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  Peer other_host(scene.world, scene.target.address().port(), "10.0.1.10");
  Peer other_port(scene.world);
  for (Peer* foreign : {&other_host, &other_port}) {
    foreign->send(scene.reader.address(), ScriptedScene::part(request, 0, 1000));
    scene.world.settle();
  }
  CHECK(scene.count("drop_response") == 2);
  CHECK(scene.holds({}));
  scene.answer_all(request);
  CHECK(scene.completions().at(0).status == WcStatus::success);
}

TEST_CASE("a response beyond what was asked for touches nothing, however its offsets wrap") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000, 0, {}, 5000));
  const Segment request = scene.requests().at(0);
  const auto answer_at = [&](uint64_t offset, size_t length, bool last) {
    Segment segment = ScriptedScene::part(request, 0, 0);
    segment.payload.assign(length, std::byte{0xEE});
    segment.tagged_offset = request.sink_offset + offset;
    segment.last = last;
    scene.answer(segment);
  };
  answer_at(0, 1001, true);
  answer_at(999, 2, true);
  answer_at(1000, 1, true);
  answer_at(1001, 0, true);
  answer_at(uint64_t{1} << 32, 1, false);
  answer_at(~uint64_t{0}, 1, false);
  answer_at(~uint64_t{0}, 2, false);
  CHECK(scene.count("drop_oversized") == 3);
  CHECK(scene.count("drop_response") == 4);
  answer_at(~uint64_t{0} - request.sink_offset, 2, false);
  CHECK(scene.count("drop_bounds") == 1);
  CHECK(scene.holds({}));
}

TEST_CASE("a response that does not repeat its request's offset touches nothing") {
  ScriptedScene scene;
  const size_t length = GENERATE(size_t{0}, size_t{1000});
  REQUIRE_FALSE(scene.post(length));
  const Segment request = scene.requests().at(0);
  for (const uint64_t guess : {uint64_t{0}, ~request.sink_offset, request.sink_offset ^ 1U << 10,
                               request.sink_offset - 1, request.sink_offset + length + 1}) {
    Segment segment = ScriptedScene::part(request, 0, static_cast<uint32_t>(length));
    segment.tagged_offset = guess;
    segment.payload = pattern(length == 0 ? 0 : 1, 1);
    scene.answer(segment);
  }
  CHECK(scene.count("drop_response") == 5);
  CHECK(scene.holds({}));
  CHECK(scene.completions().empty());
  scene.answer(request, 0, static_cast<uint32_t>(length));
  CHECK(scene.completions().at(0).status == WcStatus::success);
}

TEST_CASE(
    "the names that a response and an Error must repeat differ from one Read Request to the next") {
  ScriptedScene scene;
  for (uint64_t i = 0; i < 16; ++i) REQUIRE_FALSE(scene.post(100, i));
  std::set<uint64_t> offsets;
  std::set<uint32_t> nonces;
  for (const Segment& request : scene.requests()) {
    offsets.insert(request.sink_offset);
    nonces.insert(request.q_key);
  }
  CHECK(offsets.size() == 16);
  CHECK(nonces.size() == 16);  // 2^-25 says otherwise
  CHECK(*offsets.rbegin() > UINT32_MAX);
}

TEST_CASE("a response whose last flag contradicts the request touches nothing") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  Segment early = ScriptedScene::part(request, 0, 500);
  early.last = true;
  scene.answer(early);
  Segment open_end = ScriptedScene::part(request, 500, 500);
  open_end.last = false;
  scene.answer(open_end);
  CHECK(scene.count("drop_contradiction") == 2);
  CHECK(scene.holds({}));
}

TEST_CASE("an empty response completes a Read of no bytes alone") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000, 1));
  REQUIRE_FALSE(scene.post(0, 2));
  const auto requests = scene.requests();
  scene.answer(requests.at(0), 0, 0);
  scene.answer(requests.at(0), 1000, 0);
  CHECK(scene.completions().empty());
  scene.answer(requests.at(1), 0, 0);
  scene.answer_all(requests.at(0));
  CHECK(scene.completions().size() == 2);
}

TEST_CASE("a response with more gaps than a map may have loses what would add one") {
  ScriptedScene scene({.memory = 1 << 20, .datagram = {.max_record_ranges = 4}});
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  for (uint32_t i = 0; i < 6; ++i) scene.answer(request, i * 100, 50);
  CHECK(scene.count("drop_range_limit") == 2);
  CHECK(scene.holds({{0, 50}, {100, 50}, {200, 50}, {300, 50}}));
  scene.answer(request, 50, 50);  // room again
  scene.answer(request, 400, 50);
  CHECK(scene.holds({{0, 150}, {200, 50}, {300, 50}, {400, 50}}));
}

TEST_CASE("guesses of a sink's STag find nothing, and are counted") {
  ScriptedScene scene(with_memory(4096));
  REQUIRE_FALSE(scene.post(1000));
  const Segment request = scene.requests().at(0);
  Random random(11);
  constexpr uint64_t kGuesses = 1 << 14;
  for (uint64_t i = 0; i < kGuesses; ++i) {
    Segment guess = ScriptedScene::part(request, 0, 8);
    while (guess.stag == request.sink_stag) guess.stag = static_cast<uint32_t>(random.next());
    scene.target.send(scene.reader.address(), guess);
    if (i % 1024 == 0) scene.world.settle();
  }
  scene.world.settle();
  CHECK(scene.count("drop_response") == kGuesses);
  CHECK(scene.holds({}));
  scene.answer_all(request);
  CHECK(scene.completions().at(0).status == WcStatus::success);
}

TEST_CASE("a flushed Read's responses touch nothing, in the error state and after it") {
  ScriptedScene scene;
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(scene.post(1000, i));
  const Segment request = scene.requests().at(1);
  scene.answer(request, 0, 100);
  const auto before = scene.reader.memory;
  scene.reader.qp.modify(QpState::error);
  const auto flushed = scene.completions();
  REQUIRE(flushed.size() == 3);
  for (const WorkCompletion& completion : flushed)
    CHECK(completion.status == WcStatus::wr_flush_error);
  scene.answer(request, 100, 100);
  CHECK(scene.count("drop_state") == 1);
  scene.reader.qp.modify(QpState::reset);
  scene.reader.qp.modify(QpState::init);
  scene.reader.qp.modify(QpState::rts);
  REQUIRE_FALSE(scene.post(500));
  scene.answer(request, 100, 100);
  CHECK(scene.count("drop_response") == 1);
  CHECK(scene.reader.memory == before);
  scene.answer_all(scene.requests().at(0));
  CHECK(scene.completions().at(0).status == WcStatus::success);
}

TEST_CASE("a queue pair that is reset forgets its Reads and reports none") {
  ScriptedScene scene;
  REQUIRE_FALSE(scene.post(1000));
  scene.reader.qp.modify(QpState::reset);
  scene.world.advance(200ms);
  CHECK(scene.completions().empty());
  CHECK(scene.count("read_timeouts") == 0);
}

TEST_CASE("a queue pair may be destroyed with Reads under way, at either end") {
  ReadScene scene;
  Party extra(scene.reader_device);
  auto reader = std::make_unique<Party>(scene.reader_device, with_memory(1 << 20));
  auto target = std::make_unique<Party>(scene.target_device, with_memory(1 << 20));
  MemoryRegion source(target->pd, target->memory, Access::remote_read);
  for (int i = 0; i < 4; ++i) {
    const Sge sge = reader->mr.sge();
    REQUIRE_FALSE(reader->qp.post_read({.sges = {sge},
                                        .destination = target->address(),
                                        .remote = {source.rkey(), source.base()}}));
  }
  for (int step = 0; step < 6; ++step) {
    scene.reader_device.progress();
    scene.target_device.progress();
  }
  const bool reader_first = GENERATE(true, false);
  if (reader_first) {
    reader.reset();
    scene.world.settle();
  }
  { MemoryRegion gone = std::move(source); }
  target.reset();
  scene.world.advance(200ms);
  CHECK(scene.read(1000).at(0).status == WcStatus::success);
}

TEST_CASE("memory that is deregistered under a Read is not written any more") {
  ScriptedScene scene;
  std::vector<std::byte> sink(1000);
  std::optional<MemoryRegion> region(std::in_place, scene.reader.pd, sink);
  const Sge sge = region->sge(0, 1000);
  REQUIRE_FALSE(scene.reader.qp.post_read(
      {.sges = {sge}, .destination = scene.target.address(), .remote = {1, 5000}}));
  scene.world.settle();
  const Segment request = scene.requests().at(0);
  scene.answer(request, 0, 100);
  const auto before = sink;
  region.reset();
  scene.answer(request, 100, 100);
  const auto completions = scene.completions();
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == WcStatus::local_protection_error);
  scene.answer(request, 200, 100);
  CHECK(sink == before);
  CHECK(scene.count("drop_response") == 2);
}

TEST_CASE("memory that is deregistered before all of a Read is asked for ends it") {
  ScriptedScene scene({.memory = 4096, .datagram = {.max_rate = 100'000, .read = {.window = 4}}});
  std::vector<std::byte> sink(1 << 20);
  std::optional<MemoryRegion> region(std::in_place, scene.reader.pd, sink);
  const Sge sge = region->sge();
  REQUIRE_FALSE(scene.reader.qp.post_read(
      {.sges = {sge}, .destination = scene.target.address(), .remote = {1, 5000}}));
  scene.world.settle();
  CHECK(scene.requests().size() == 2);  // the rate lets no more through
  region.reset();
  scene.world.advance(10ms);
  CHECK(scene.requests().empty());
  const auto completions = scene.completions();
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == WcStatus::local_protection_error);
}

TEST_CASE("memory that is deregistered at a Read's target is not sent any more") {
  ReadScene scene({.reader = with_memory(1 << 20),
                   .target = {.memory = 1 << 20, .datagram = {.max_rate = 10'000'000}}});
  scene.get_acquainted();
  std::optional<MemoryRegion> region(std::in_place, scene.target.pd, scene.target.memory,
                                     Access::remote_read);
  const Sge sge = scene.reader.mr.sge();
  REQUIRE_FALSE(scene.reader.qp.post_read({.sges = {sge},
                                           .destination = scene.target.address(),
                                           .remote = {region->rkey(), region->base()}}));
  for (int i = 0; i < 10; ++i) scene.world.advance(1ms);
  CHECK_FALSE(scene.from_target.responses().empty());
  region.reset();
  scene.from_target.sent.clear();
  scene.world.advance(10ms);
  CHECK(scene.from_target.responses().empty());
  CHECK(scene.from_target.controls(kError).size() == 2);  // one for each request
  const auto completions = drain(scene.reader.send_cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == WcStatus::remote_access_error);
}
