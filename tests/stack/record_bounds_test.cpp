// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <set>

#include "stack/record_scene.h"

/// The memory that strangers, and an application that does not look, can make a queue pair hold:
/// bounded amounts.
namespace diwarp::test {

namespace {

PartyOptions bounded(uint32_t records, uint32_t per_source) {
  PartyOptions options;
  options.datagram.max_open_records = records;
  options.datagram.max_open_records_per_source = per_source;
  return options;
}

std::vector<uint32_t> open_numbers(const RecordScene& scene) {
  std::vector<uint32_t> numbers;
  for (const OpenRecord& record : scene.target.qp.open_records()) numbers.push_back(record.msn);
  return numbers;
}

/// Where the reported records begin, in hundreds.
std::vector<uint64_t> places(const std::vector<WorkCompletion>& records) {
  std::vector<uint64_t> all;
  for (const WorkCompletion& record : records) all.push_back((record.tagged_offset - kBase) / 100);
  return all;
}

using Numbers = std::vector<uint32_t>;
using Places = std::vector<uint64_t>;

}  // namespace

TEST_CASE("one record too many of a source ends its own that was longest without progress") {
  RecordScene scene(bounded(8, 3));
  Stranger other(scene.world);
  scene.send(other, scene.part(1, 0, 10, 20, 900));
  for (uint32_t msn : {1U, 2U, 3U}) scene.send(scene.part(msn, 0, 10, 30, msn * 100));
  scene.send(scene.part(1, 20, 10, 30, 100));  // makes 2 the oldest
  scene.send(scene.part(2, 0, 10, 30, 200));   // a duplicate is no progress
  scene.send(scene.part(4, 0, 10, 30, 400));
  const auto records = scene.records();
  CHECK(places(records) == Places{2});
  CHECK(ranges_of(records.at(0).validity) == Ranges{{0, 10}});
  CHECK(scene.is_placed(records[0], 2));
  CHECK(open_numbers(scene) == Numbers{1, 3, 1, 4});
  CHECK(scene.count("records_evicted") == 1);
  CHECK(scene.count("records_partial") == 1);
  scene.send(scene.part(2, 10, 20, 30, 200));
  CHECK(scene.count("drop_late") == 1);
}

TEST_CASE("one record too many in all ends the one that was longest without progress") {
  RecordScene scene(bounded(4, 3));
  Stranger other(scene.world);
  for (uint32_t msn : {1U, 2U}) scene.send(scene.part(msn, 0, 10, 30, msn * 100));
  for (uint32_t msn : {3U, 4U}) scene.send(other, scene.part(msn, 0, 10, 30, msn * 100));
  scene.send(scene.part(1, 10, 10, 30, 100));
  scene.send(other, scene.part(5, 0, 10, 30, 500));
  CHECK(places(scene.records()) == Places{2});
  scene.send(scene.part(6, 0, 10, 30, 600));
  CHECK(places(scene.records()) == Places{3});
  CHECK(scene.count("records_evicted") == 2);
  CHECK(open_numbers(scene) == Numbers{4, 1, 5, 6});
  scene.world.advance(100ms);
  CHECK(places(scene.records()) == Places{4, 1, 5, 6});
}

TEST_CASE("a record of one segment is an open one for a moment, and may evict as well") {
  RecordScene scene(bounded(1, 1));
  scene.send(scene.part(1, 0, 10, 30, 100));
  scene.send(scene.whole(2, 30, 200));
  const auto records = scene.records();
  CHECK(places(records) == Places{1, 2});
  CHECK(records.at(1).validity.complete());
}

TEST_CASE("a segment that would need one range too many is dropped, and its bytes not claimed") {
  PartyOptions options;
  options.datagram.max_record_ranges = 5;
  RecordScene scene(options);
  for (uint32_t i = 0; i < 8; ++i) scene.send(scene.part(1, i * 20, 10, 200));
  CHECK(scene.count("drop_range_limit") == 3);
  CHECK(scene.is_placed(scene.target.qp.open_records().at(0).validity, kBase, 1));
  scene.send(scene.part(1, 10, 10, 200));  // closes a gap, so that there is room for another
  scene.send(scene.part(1, 140, 10, 200));
  scene.send(scene.part(1, 190, 10, 200));  // the last one, and again too many
  CHECK(scene.count("drop_range_limit") == 4);
  scene.world.advance(100ms);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(ranges_of(records[0].validity) == Ranges{{0, 30}, {40, 10}, {60, 10}, {80, 10}, {140, 10}});
  CHECK(scene.is_placed(records[0], 1));
}

TEST_CASE("a full map that the last segment meets does not end the record by its policy") {
  PartyOptions options;
  options.datagram.max_record_ranges = 1;
  options.datagram.record_completion = RecordCompletion::last_segment;
  RecordScene scene(options);
  scene.send(scene.part(1, 0, 10, 100));
  scene.send(scene.part(1, 90, 10, 100));
  CHECK(scene.records().empty());
  scene.world.advance(100ms);
  CHECK(scene.records().size() == 1);
}

TEST_CASE("maps that the application holds are counted against the pool until it drops them") {
  PartyOptions options;
  options.datagram.max_validity_maps = 2;
  RecordScene scene(options);
  const auto gappy = [&](uint32_t msn) {
    scene.send(scene.part(msn, 0, 10, 60, msn * 100));
    scene.send(scene.part(msn, 20, 10, 60, msn * 100));
  };
  gappy(1);
  gappy(2);
  scene.world.advance(100ms);
  auto held = scene.records();
  REQUIRE(held.size() == 2);

  gappy(3);
  CHECK(scene.count("drop_range_limit") == 1);
  scene.send(scene.part(3, 10, 10, 60, 300));  // beside what is there: needs no map
  scene.send(scene.whole(4, 60, 400));         // nor does a whole one
  CHECK(scene.records().size() == 1);
  CHECK(scene.target.qp.open_records().at(0).validity.valid_bytes() == 20);
  scene.world.advance(100ms);
  auto third = scene.records();
  REQUIRE(third.size() == 1);
  CHECK(ranges_of(third[0].validity) == Ranges{{0, 20}});
  CHECK(scene.is_placed(third[0], 3));

  const ValidityMap copy = held[0].validity;
  held.clear();  // one place comes back, the copy keeps the other
  gappy(5);
  gappy(6);
  CHECK(scene.count("drop_range_limit") == 2);
  scene.world.advance(100ms);
  const auto after = scene.records();
  REQUIRE(after.size() == 2);
  CHECK(after[0].validity.range_count() == 2);
  CHECK(after[1].validity.range_count() == 1);
  CHECK(copy.range_count() == 2);
}

TEST_CASE("asking for open records takes no place of the pool") {
  PartyOptions options;
  options.datagram.max_validity_maps = 1;
  RecordScene scene(options);
  scene.send(scene.part(1, 0, 10, 60));
  scene.send(scene.part(1, 20, 10, 60));
  std::vector<std::vector<OpenRecord>> asked;
  for (int i = 0; i < 10; ++i) asked.push_back(scene.target.qp.open_records());
  scene.send(scene.part(1, 40, 10, 60));
  CHECK(scene.count("drop_range_limit") == 0);
  CHECK(asked[9].at(0).validity.range_count() == 2);
}

TEST_CASE("maps can be read and dropped when their queue pair is gone") {
  std::vector<WorkCompletion> records;
  std::vector<OpenRecord> open;
  {
    RecordScene scene;
    scene.send(scene.part(1, 0, 10, 60));
    scene.send(scene.part(1, 20, 10, 60));
    open = scene.target.qp.open_records();
    scene.world.advance(100ms);
    records = scene.records();
  }
  REQUIRE(records.size() == 1);
  CHECK(ranges_of(records[0].validity) == Ranges{{0, 10}, {20, 10}});
  CHECK(ranges_of(open.at(0).validity) == Ranges{{0, 10}, {20, 10}});
}

TEST_CASE("while the completion queue is full records wait, none is lost, and no more open") {
  PartyOptions options = bounded(4, 4);
  options.receive_entries = 2;
  const auto policy = GENERATE(RecordCompletion::complete, RecordCompletion::last_segment,
                               RecordCompletion::per_segment);
  options.datagram.record_completion = policy;
  RecordScene scene(options);
  for (uint32_t msn = 1; msn <= 20; ++msn) scene.send(scene.whole(msn, 50, msn * 100));
  // Two in the queue, four that wait.
  CHECK(scene.count("drop_no_context") == 14);
  for (uint32_t msn = 7; msn <= 20; ++msn) {
    const auto at = scene.target.memory.begin() + msn * 100;
    CHECK(std::equal(at, at + 50, scene.before.begin() + msn * 100));  // nothing was written
  }
  Places all;
  for (int i = 0; i < 10; ++i) {
    for (uint64_t place : places(scene.records())) all.push_back(place);
    scene.world.settle();
  }
  CHECK(all == Places{1, 2, 3, 4, 5, 6});
  scene.send(scene.whole(21, 50, 2100));
  scene.send(scene.whole(7, 50, 700));  // dropped before, so not late
  CHECK(places(scene.records()) == Places{21, 7});
}

TEST_CASE("a record that comes when one completion was polled finds the room of that one") {
  PartyOptions options = bounded(4, 4);
  options.receive_entries = 2;
  RecordScene scene(options);
  for (uint32_t msn = 1; msn <= 6; ++msn) scene.send(scene.whole(msn, 50, msn * 100));
  scene.stranger.send(scene.target.address(), scene.whole(7, 50, 700));
  WorkCompletion one;
  REQUIRE(scene.target.recv_cq.poll({&one, 1}) == 1);  // takes one, then lets the engine work
  CHECK(scene.count("drop_no_context") == 0);
  Places all;
  for (int i = 0; i < 10; ++i)
    for (uint64_t place : places(scene.records())) all.push_back(place);
  CHECK(all == Places{2, 3, 4, 5, 6, 7});
}

TEST_CASE("records that are open while the completion queue is full go on, and are all reported") {
  PartyOptions options = bounded(4, 4);
  options.receive_entries = 1;
  RecordScene scene(options);
  for (uint32_t msn = 1; msn <= 4; ++msn) scene.send(scene.part(msn, 0, 25, 50, msn * 100));
  for (uint32_t msn = 1; msn <= 4; ++msn) scene.send(scene.part(msn, 25, 25, 50, msn * 100));
  for (uint32_t msn = 5; msn <= 8; ++msn) scene.send(scene.part(msn, 0, 25, 50, msn * 100));
  CHECK(scene.count("drop_no_context") == 0);
  CHECK(scene.target.qp.open_records().size() == 4);
  scene.world.advance(100ms);  // they end although there is no room
  CHECK(scene.target.qp.open_records().empty());
  scene.send(scene.whole(9, 50, 900));
  CHECK(scene.count("drop_no_context") == 1);
  Places all;
  for (int i = 0; i < 20; ++i) {
    const auto records = scene.records();
    for (const WorkCompletion& record : records) {
      all.push_back((record.tagged_offset - kBase) / 100);
      CHECK(record.validity.complete() == (all.back() <= 4));
      CHECK(scene.is_placed(record, static_cast<uint32_t>(all.back())));
    }
    scene.world.settle();
  }
  CHECK(all == Places{1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("a burst of more records than may wait is taken where the completion queue has room") {
  PartyOptions options = bounded(4, 4);
  options.datagram.record_completion =
      GENERATE(RecordCompletion::complete, RecordCompletion::per_segment);
  RecordScene scene(options);
  for (uint32_t msn = 1; msn <= 60; ++msn)
    scene.stranger.send(scene.target.address(), scene.whole(msn, 50, msn * 100));
  scene.world.settle();
  CHECK(drops(scene.device) == 0);
  CHECK(scene.records().size() == 60);
}

TEST_CASE("a flood of records from spoofed sources is held to its bounds, and honest ones arrive") {
  constexpr uint32_t kSources = 60'000;
  constexpr uint32_t kHonest = 300;
  constexpr uint32_t kLength = 4000;
  PartyOptions options = bounded(64, 16);
  options.datagram.max_sources = 256;
  options.datagram.max_validity_maps = 128;
  options.receive_entries = 64;
  RecordScene scene(options);
  scene.target.post_receives(64, 20);
  Stranger honest(scene.world);
  Random random(1);

  // Each spoofed source opens a record and leaves it, with a gap; its address is made up, for which
  // an incarnation does as well. Between any two honest segments come 20 of them.
  uint32_t spoofed = 0;
  const auto flood = [&] {
    for (int i = 0; i < 20; ++i, ++spoofed) {
      const bool second = i % 2 != 0;
      Segment segment = scene.part(1, second ? 20 : 0, 10, 50, 40'000 + random.below(10'000));
      segment.incarnation = 1000 + spoofed / 2;
      segment.tagged_offset = kBase + 50'000 + segment.offset;
      scene.stranger.send(scene.target.address(), segment);
    }
  };
  std::set<uint64_t> complete;
  size_t received = 0;
  size_t in_use = 0;
  const auto collect = [&] {
    for (const WorkCompletion& completion : drain(scene.target.recv_cq)) {
      if (completion.source != honest.address()) continue;
      if (completion.opcode == WcOpcode::recv)
        received += scene.target.post_recv(completion.wr_id, completion.wr_id * 20, 20) ? 0 : 1;
      else if (completion.validity.complete())
        complete.insert(completion.immediate);
    }
  };
  for (uint32_t message = 0; message < kHonest; ++message) {
    for (uint32_t offset = 0; offset < kLength; offset += 400) {
      Segment segment = scene.part(message, offset, 400, kLength);
      segment.immediate = message;
      scene.send(honest, segment);
      flood();
      scene.world.settle();
      REQUIRE(scene.target.qp.open_records().size() <= 64);
      collect();
    }
    scene.send(honest, Segment{.msn = message, .payload = pattern(20, 1)});
    scene.world.advance(1ms);
    collect();
    // The memory of the first third is enough for the rest.
    if (message == kHonest / 3) in_use = ::mallinfo2().uordblks;
  }
  CHECK(spoofed == kSources);
  CHECK(complete.size() == kHonest);
  CHECK(received == kHonest);
  CHECK(scene.count("records_evicted") > kSources / 4);
  CHECK(::mallinfo2().uordblks <= in_use + (64 << 10));
}

TEST_CASE("half messages from one source do not end those of another") {
  RecordScene scene(bounded(64, 16));
  Stranger honest(scene.world);
  scene.send(honest, scene.part(1, 0, 10, 20, 100));
  for (uint32_t msn = 1; msn <= 1000; ++msn) {
    scene.send(scene.part(msn, 0, 10, 20, 200));
    scene.records();
  }
  CHECK(scene.count("records_evicted") == 1000 - 16);
  scene.send(honest, scene.part(1, 10, 10, 20, 100));
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].validity.complete());
}

}  // namespace diwarp::test
