// SPDX-License-Identifier: Apache-2.0
#include "stack/record_scene.h"

/// When the target of a Write-Record is told of it.
namespace diwarp::test {

namespace {

PartyOptions with(RecordCompletion policy) { return {.datagram = {.record_completion = policy}}; }

}  // namespace

TEST_CASE("a record is reported when its last missing byte comes, in whatever order") {
  RecordScene scene;
  scene.send(scene.part(1, 200, 50, 250));
  scene.send(scene.part(1, 0, 100, 250));
  CHECK(scene.records().empty());
  scene.send(scene.part(1, 100, 100, 250));
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].validity.complete());
  CHECK(records[0].byte_count == 250);
  CHECK(scene.is_placed(records[0], 1));
  CHECK(scene.count("records_completed") == 1);
}

TEST_CASE("a record of which nothing new comes is reported with what is valid") {
  RecordScene scene;
  scene.send(scene.part(1, 0, 100, 500, 700));
  scene.send(scene.part(1, 200, 50, 500, 700));
  scene.send(scene.part(1, 450, 50, 500, 700));
  scene.world.advance(99ms);
  CHECK(scene.records().empty());
  scene.world.advance(1ms);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].source == scene.stranger.address());
  CHECK(records[0].stag == scene.region.rkey());
  CHECK(records[0].tagged_offset == kBase + 700);
  CHECK(records[0].byte_count == 500);
  CHECK(records[0].valid_bytes == 200);
  CHECK(ranges_of(records[0].validity) == Ranges{{0, 100}, {200, 50}, {450, 50}});
  CHECK(scene.is_placed(records[0], 1));
  CHECK(scene.count("records_partial") == 1);
  CHECK(scene.count("records_evicted") == 0);
  CHECK(scene.count("message_timeouts") == 1);
  CHECK(scene.target.qp.open_records().empty());
}

TEST_CASE("the loss of any one segment, the last one included, costs its bytes and no more") {
  RecordScene scene;
  const uint32_t lost = GENERATE(0U, 1U, 2U, 3U, 4U);
  CAPTURE(lost);
  for (uint32_t i = 0; i < 5; ++i)
    if (i != lost) scene.send(scene.part(9, i * 100, 100, 500));
  scene.world.advance(100ms);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].validity.missing_bytes() == 100);
  CHECK(records[0].validity.first_gap() == Range{lost * 100, 100});
  CHECK(scene.is_placed(records[0], 9));
}

TEST_CASE("the record timeout counts from the last new byte, and is the queue pair's own") {
  PartyOptions options;
  options.datagram.record_timeout = 250ms;
  RecordScene scene(options);
  scene.send(scene.part(1, 0, 100, 500));
  scene.world.advance(200ms);
  scene.send(scene.part(1, 100, 100, 500));
  scene.world.advance(200ms);
  scene.send(scene.part(1, 100, 100, 500));  // nothing new
  scene.send(scene.part(1, 150, 100, 500));  // a contradiction
  scene.world.advance(49ms);
  CHECK(scene.records().empty());
  scene.world.advance(1ms);
  REQUIRE(scene.records().size() == 1);
  CHECK(scene.count("drop_duplicate") == 1);
  CHECK(scene.count("drop_contradiction") == 1);
}

TEST_CASE("a segment without bytes does not put off the record timeout") {
  RecordScene scene;
  scene.send(scene.part(1, 0, 100, 500));
  scene.world.advance(60ms);
  scene.send(scene.part(1, 500, 0, 500));
  CHECK(drops(scene.device) == 0);
  scene.world.advance(40ms);
  CHECK(scene.records().size() == 1);
}

TEST_CASE("records time out each at its own time") {
  RecordScene scene;
  scene.send(scene.part(1, 0, 10, 100));
  scene.world.advance(30ms);
  scene.send(scene.part(2, 0, 10, 100, 1000));
  scene.world.advance(30ms);
  scene.send(scene.part(3, 0, 10, 100, 2000));
  scene.world.advance(30ms);
  scene.send(scene.part(1, 10, 10, 100));
  std::vector<uint64_t> order;
  for (int step = 0; step < 10; ++step) {
    scene.world.advance(20ms);
    for (const WorkCompletion& record : scene.records())
      order.push_back(record.tagged_offset - kBase);
  }
  CHECK(order == std::vector<uint64_t>{1000, 2000, 0});
}

TEST_CASE("by policy the last segment ends a record, with what came before it") {
  RecordScene scene(with(RecordCompletion::last_segment));
  scene.send(scene.part(1, 0, 100, 500));
  scene.send(scene.part(1, 300, 100, 500));
  CHECK(scene.records().empty());
  scene.send(scene.part(1, 400, 100, 500));
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(ranges_of(records[0].validity) == Ranges{{0, 100}, {300, 200}});
  scene.send(scene.part(1, 100, 200, 500));
  CHECK(scene.count("drop_late") == 1);
  CHECK(scene.is_placed(records[0], 1));
  CHECK(scene.count("records_partial") == 1);
}

TEST_CASE("where the last segment ends a record and comes first, it is all that is valid") {
  RecordScene scene(with(RecordCompletion::last_segment));
  scene.send(scene.part(1, 400, 100, 500));
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(ranges_of(records[0].validity) == Ranges{{400, 100}});
  for (uint32_t i = 0; i < 4; ++i) scene.send(scene.part(1, i * 100, 100, 500));
  CHECK(scene.count("drop_late") == 4);
  CHECK(scene.is_placed(records[0], 1));
  CHECK(scene.records().empty());
}

TEST_CASE("where the last segment ends a record and never comes, time does") {
  RecordScene scene(with(RecordCompletion::last_segment));
  scene.send(scene.part(1, 0, 100, 500));
  scene.send(scene.part(2, 0, 100, 100, 1000));
  auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].validity.complete());
  CHECK(scene.is_placed(records[0], 2));
  scene.world.advance(100ms);
  records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(ranges_of(records[0].validity) == Ranges{{0, 100}});
}

TEST_CASE("an empty last segment ends a record by that policy, and by no other") {
  const auto policy = GENERATE(RecordCompletion::complete, RecordCompletion::last_segment);
  RecordScene scene(with(policy));
  scene.send(scene.part(1, 0, 100, 500));
  scene.send(scene.part(1, 500, 0, 500));
  const auto records = scene.records();
  CHECK(records.size() == (policy == RecordCompletion::last_segment ? 1 : 0));
  CHECK(drops(scene.device) == 0);
}

TEST_CASE("by policy each segment is reported by itself, duplicates as well") {
  RecordScene scene(with(RecordCompletion::per_segment));
  Segment second = scene.part(1, 100, 150, 300, 1000);
  second.immediate = 77;
  second.solicited = true;
  scene.send(second);
  scene.send(scene.part(1, 0, 100, 300, 1000));
  scene.send(scene.part(1, 0, 100, 300, 1000));
  scene.send(scene.part(1, 250, 50, 300, 1000));
  const auto records = scene.records();
  REQUIRE(records.size() == 4);
  const std::array<uint64_t, 4> offsets{100, 0, 0, 250};
  const std::array<uint32_t, 4> sizes{150, 100, 100, 50};
  for (size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(records[i].source == scene.stranger.address());
    CHECK(records[i].stag == scene.region.rkey());
    CHECK(records[i].tagged_offset == kBase + 1000 + offsets[i]);
    CHECK(records[i].byte_count == sizes[i]);
    CHECK(records[i].valid_bytes == sizes[i]);
    CHECK(records[i].validity.length() == 300);
    CHECK(ranges_of(records[i].validity) == Ranges{{offsets[i], sizes[i]}});
    CHECK(records[i].has_immediate == (i == 0));
    CHECK(records[i].solicited == (i == 0));
  }
  CHECK(records[0].immediate == 77);
  CHECK(scene.is_placed(ValidityMap(300, Range{0, 300}), kBase + 1000, 1));
  CHECK(scene.target.qp.open_records().empty());
  scene.world.advance(1s);
  CHECK(scene.records().empty());
  CHECK(drops(scene.device) == 0);
}

TEST_CASE("a record of no bytes is complete by every policy") {
  const auto policy = GENERATE(RecordCompletion::complete, RecordCompletion::last_segment,
                               RecordCompletion::per_segment);
  RecordScene scene(with(policy));
  const uint64_t at = GENERATE(uint64_t{0}, uint64_t{500}, uint64_t{64 << 10});
  scene.send(scene.whole(1, 0, at));
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].tagged_offset == kBase + at);
  CHECK(records[0].byte_count == 0);
  CHECK(records[0].validity.complete());
  CHECK(records[0].validity.length() == 0);
  CHECK(scene.is_untouched());
  scene.send(scene.whole(1, 0, at));
  CHECK(scene.records().size() == (policy == RecordCompletion::per_segment ? 1 : 0));
}

TEST_CASE("an STag that is invalidated ends the records that are open on it") {
  RecordScene scene;
  MemoryRegion other(scene.target.pd, std::span(scene.target.memory).subspan(2000, 1000), kWritable,
                     kBase + 2000);
  scene.send(scene.part(1, 0, 100, 500));
  Segment elsewhere = scene.part(2, 0, 100, 500, 2000);
  elsewhere.stag = other.rkey();
  scene.send(elsewhere);
  REQUIRE_FALSE(scene.target.qp.post_send(
      {.opcode = WrOpcode::local_invalidate, .invalidate_stag = other.rkey()}));
  scene.world.settle();
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].stag == other.rkey());
  CHECK(ranges_of(records[0].validity) == Ranges{{0, 100}});
  REQUIRE(scene.target.qp.open_records().size() == 1);
  CHECK(scene.target.qp.open_records()[0].stag == scene.region.rkey());
  elsewhere = scene.part(2, 100, 100, 500, 2000);
  elsewhere.stag = other.rkey();
  scene.send(elsewhere);
  CHECK(scene.count("drop_late") == 1);
  CHECK(scene.is_placed(records[0], 2));
}

TEST_CASE("a peer's Send with Invalidate ends the records that are open on the STag") {
  RecordScene scene;
  MemoryRegion other(scene.target.pd, std::span(scene.target.memory).subspan(2000, 1000),
                     kWritable | Access::remote_invalidate, kBase + 2000);
  scene.target.post_receives(1, 10);
  Segment segment = scene.part(2, 0, 100, 500, 2000);
  segment.stag = other.rkey();
  scene.send(segment);
  scene.send(
      {.msn = 1, .q_key = other.rkey(), .payload = pattern(5, 1), .opcode = kSendInvalidate});
  const auto all = drain(scene.target.recv_cq);
  REQUIRE(all.size() == 2);
  CHECK(std::count_if(all.begin(), all.end(), [](const WorkCompletion& completion) {
          return completion.opcode == WcOpcode::recv_write_record && completion.valid_bytes == 100;
        }) == 1);
  CHECK_FALSE(other.valid());
}

TEST_CASE("a reset queue pair forgets its records and reports nothing of them") {
  RecordScene scene;
  scene.send(scene.part(1, 0, 100, 500));
  scene.send(scene.part(1, 200, 100, 500));
  const bool by_error = GENERATE(false, true);
  if (by_error) scene.target.qp.modify(QpState::error);
  scene.target.qp.modify(QpState::reset);
  CHECK(scene.target.qp.open_records().empty());
  scene.world.advance(1s);
  CHECK(scene.records().empty());
  scene.target.qp.modify(QpState::init);
  scene.target.qp.modify(QpState::rts);
  scene.send(scene.part(1, 100, 400, 500));
  scene.world.advance(100ms);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(ranges_of(records[0].validity) == Ranges{{100, 400}});
}

TEST_CASE(
    "an armed completion queue tells of records, if they are solicited where that was asked") {
  World world;
  Device& device = world.add_device();
  CompletionChannel channel(device);
  ProtectionDomain pd(device);
  CompletionQueue send_cq(device, 4);
  CompletionQueue cq(device, 16, channel, 7);
  QueuePair qp(pd, {.type = QpType::ud, .send_cq = send_cq, .recv_cq = cq});
  std::vector<std::byte> memory(100);
  MemoryRegion region(pd, std::span(memory), kWritable, kBase);
  Stranger stranger(world);
  Segment segment{.msn = 1,
                  .payload = pattern(10, 1),
                  .opcode = kWriteRecord,
                  .stag = region.rkey(),
                  .tagged_offset = kBase};
  cq.arm(true);
  stranger.send(qp.address(), segment);
  world.settle();
  CHECK_FALSE(channel.get_event(0ms).has_value());
  segment.msn = 2;
  segment.solicited = true;
  stranger.send(qp.address(), segment);
  world.settle();
  CHECK(channel.get_event(0ms).has_value());
}

}  // namespace diwarp::test
