// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "stack/record_scene.h"

/// Segments of Write-Records that should not be: they change nothing.
namespace diwarp::test {

namespace {

/// Two thirds of an open record, of which nothing must change.
struct Opened : RecordScene {
  Opened() {
    send(part(1, 0, 100, 300, 1000));
    send(part(1, 200, 100, 300, 1000));
    half = target.memory;
  }
  /// Sends what must be refused for this reason, and nothing else.
  void refuse(const Segment& segment, const char* reason) {
    const uint64_t all = drops(device);
    const uint64_t count_before = count(reason);
    send(segment);
    CHECK(count(reason) == count_before + 1);
    CHECK(drops(device) == all + 1);
    CHECK(target.memory == half);
    CHECK(records().empty());
  }
  /// The record goes on as if nothing had been.
  void finish() {
    send(part(1, 100, 100, 300, 1000));
    const auto reported = records();
    REQUIRE(reported.size() == 1);
    CHECK(reported[0].validity.complete());
    CHECK(is_placed(reported[0], 1));
  }
  std::vector<std::byte> half;
};

/// A region fault, and the segment that has it.
struct Misdirected {
  const char* name;
  const char* counter;
  Segment segment;
};

}  // namespace

TEST_CASE("a segment that says something else of an open record is dropped") {
  Opened scene;
  Segment segment = scene.part(1, 100, 100, 300, 1000);
  std::fill(segment.payload.begin(), segment.payload.end(), std::byte{0xBD});
  const MemoryRegion other(scene.target.pd, std::span(scene.target.memory), kWritable, kBase);
  SECTION("another base") { segment.tagged_offset += 1; }
  SECTION("another base far away") { segment.tagged_offset -= 1000; }
  SECTION("a longer message") { segment.message_length = 301; }
  SECTION("a shorter message that it would end") {
    segment.message_length = 200;
    segment.last = true;
  }
  SECTION("the longest message") { segment.message_length = 1U << 30; }
  SECTION("another STag") { segment.stag = other.rkey(); }
  SECTION("an STag that nobody has") { segment.stag ^= 0x100; }
  SECTION("immediate data") { segment.immediate = 1; }
  SECTION("solicited") { segment.solicited = true; }
  scene.refuse(segment, "drop_contradiction");
  scene.finish();
}

TEST_CASE("a segment with other immediate data than its record's is dropped") {
  RecordScene scene;
  Segment first = scene.part(1, 0, 100, 200);
  first.immediate = 5;
  scene.send(first);
  Segment second = scene.part(1, 100, 100, 200);
  scene.send(second);
  second.immediate = 6;
  scene.send(second);
  CHECK(scene.count("drop_contradiction") == 2);
  second.immediate = 5;
  scene.send(second);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].has_immediate);
  CHECK(records[0].immediate == 5);
  CHECK(records[0].validity.complete());
}

TEST_CASE("a segment that overlaps others in part is dropped whole, and never rewrites") {
  Opened scene;
  const auto [offset, size] =
      GENERATE(std::pair(50U, 100U), std::pair(99U, 2U), std::pair(199U, 2U), std::pair(0U, 300U),
               std::pair(100U, 101U), std::pair(1U, 199U));
  CAPTURE(offset, size);
  Segment segment = scene.part(1, offset, size, 300, 1000);
  std::fill(segment.payload.begin(), segment.payload.end(), std::byte{0xBD});
  scene.refuse(segment, "drop_contradiction");
  scene.finish();
}

TEST_CASE("bytes that came once are not written again, whatever the duplicate says") {
  Opened scene;
  const auto [offset, size] =
      GENERATE(std::pair(0U, 100U), std::pair(20U, 50U), std::pair(200U, 100U), std::pair(299U, 1U),
               std::pair(150U, 0U), std::pair(0U, 0U));
  CAPTURE(offset, size);
  Segment segment = scene.part(1, offset, size, 300, 1000);
  std::fill(segment.payload.begin(), segment.payload.end(), std::byte{0xBD});
  scene.refuse(segment, "drop_duplicate");
  scene.finish();
}

TEST_CASE("a record that was reported is never written again") {
  RecordScene scene;
  enum class End { complete, timeout, eviction };
  const End end = GENERATE(End::complete, End::timeout, End::eviction);
  CAPTURE(static_cast<int>(end));
  scene.send(scene.part(5, 0, 100, 300, 1000));
  if (end == End::complete) scene.send(scene.part(5, 100, 200, 300, 1000));
  if (end == End::timeout) scene.world.advance(100ms);
  if (end == End::eviction)
    for (uint32_t msn = 10; msn < 74; ++msn)
      scene.send(scene.part(msn, 0, 10, 20, 2000 + msn * 20));
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  const auto memory = scene.target.memory;
  const uint64_t late = scene.count("drop_late");
  std::vector<Segment> later;
  for (uint32_t offset : {0U, 100U, 200U}) later.push_back(scene.part(5, offset, 100, 300, 1000));
  later.push_back(scene.part(5, 0, 300, 300, 1000));
  later.push_back(scene.part(5, 0, 64, 64, 500));  // another message, by its own account
  for (Segment& segment : later) {
    std::fill(segment.payload.begin(), segment.payload.end(), std::byte{0xBD});
    scene.send(segment);
  }
  CHECK(scene.count("drop_late") == late + later.size());
  CHECK(scene.target.memory == memory);
  scene.world.advance(1s);
  CHECK(scene.target.memory == memory);
}

TEST_CASE("the newest 1024 records of a source and all below them are remembered as reported") {
  RecordScene scene;
  constexpr uint32_t kFirst = 0xFFFFFE00;  // the numbers wrap on the way
  for (uint32_t i = 0; i < 3000; i += 2) {
    scene.send(scene.whole(kFirst + i, 8, 8));
    if (i % 100 == 0) scene.records();
  }
  scene.records();
  CHECK(drops(scene.device) == 0);
  for (uint32_t i = 0; i < 3000; ++i) {
    CAPTURE(i);
    const bool late = i % 2 == 0 || i <= 2998 - 2 * 1024;
    const uint64_t before = scene.count("drop_late");
    scene.send(scene.whole(kFirst + i, 8, 16));
    REQUIRE(scene.records().size() == (late ? 0 : 1));
    REQUIRE(scene.count("drop_late") == before + (late ? 1 : 0));
    if (i > 3000 - 2 * 1024 + 40) i += 96;  // once is enough: each moves the floor
  }
}

TEST_CASE("a record that is still open goes on, however many newer ones were reported meanwhile") {
  RecordScene scene;
  scene.send(scene.part(7, 0, 8, 16));
  for (uint32_t i = 0; i < 1500; ++i) {
    scene.send(scene.whole(8 + i, 8, 16));
    if (i % 100 == 0) scene.records();
  }
  scene.records();
  scene.send(scene.part(7, 8, 8, 16));
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].validity.complete());
  CHECK(scene.is_placed(records[0], 7));
  scene.send(scene.whole(6, 8, 16));  // as old as that, but new
  CHECK(scene.records().empty());
  CHECK(scene.count("drop_late") == 1);
}

TEST_CASE("a segment that names memory that it may not write is refused, and nothing is written") {
  RecordScene scene;
  ProtectionDomain foreign_domain(scene.device);
  const std::span<std::byte> memory(scene.target.memory);
  MemoryRegion foreign(foreign_domain, memory, kWritable, kBase);
  MemoryRegion local_only(scene.target.pd, memory, Access::local_write, kBase);
  MemoryRegion readable(scene.target.pd, memory, Access::local_write | Access::remote_read, kBase);
  MemoryRegion small(scene.target.pd, memory.subspan(1000, 100), kWritable, kBase);
  MemoryRegion high(scene.target.pd, memory.subspan(1000, 100), kWritable, ~uint64_t{0} - 100);
  MemoryWindow unbound(scene.target.pd);
  const auto aimed = [&](STag stag, uint64_t tagged_offset, uint32_t offset, uint32_t size,
                         uint32_t length) {
    Segment segment = scene.part(1, offset, size, offset + size);
    segment.message_length = length;
    segment.last = offset + size == length;
    segment.stag = stag;
    segment.tagged_offset = tagged_offset;
    return segment;
  };
  const STag stag = small.rkey();
  const std::vector<Misdirected> all{
      {"STag 0", "drop_stag", aimed(0, kBase, 0, 10, 10)},
      {"an STag with another key", "drop_stag", aimed(stag ^ 1, kBase, 0, 10, 10)},
      {"an STag with another index", "drop_stag", aimed(stag ^ 0x100, kBase, 0, 10, 10)},
      {"another protection domain", "drop_stag", aimed(foreign.rkey(), kBase, 0, 10, 10)},
      {"a window that is not bound", "drop_stag", aimed(unbound.stag(), kBase, 0, 10, 10)},
      {"no right to write", "drop_access", aimed(local_only.rkey(), kBase, 0, 10, 10)},
      {"the right to read only", "drop_access", aimed(readable.rkey(), kBase, 0, 10, 10)},
      {"one byte before", "drop_bounds", aimed(stag, kBase - 1, 0, 10, 10)},
      {"one byte behind", "drop_bounds", aimed(stag, kBase + 91, 0, 10, 10)},
      {"one byte too long", "drop_bounds", aimed(stag, kBase, 0, 101, 101)},
      {"no byte, but behind the end", "drop_bounds", aimed(stag, kBase + 101, 0, 0, 0)},
      {"no byte, but before the beginning", "drop_bounds", aimed(stag, kBase - 1, 0, 0, 0)},
      {"no byte of too long a message", "drop_bounds", aimed(stag, kBase + 101, 101, 0, 101)},
      {"inside, of a message that begins outside", "drop_bounds",
       aimed(stag, kBase + 5, 10, 10, 50)},
      {"inside, of a message that ends outside", "drop_bounds", aimed(stag, kBase, 0, 10, 101)},
      {"inside, of the longest message", "drop_bounds", aimed(stag, kBase, 0, 10, 1U << 30)},
      {"tagged offset 0", "drop_bounds", aimed(stag, 0, 0, 10, 10)},
      {"near the highest offset, too long", "drop_bounds",
       aimed(high.rkey(), ~uint64_t{0} - 100, 0, 10, 101)},
  };
  for (const Misdirected& misdirected : all) {
    CAPTURE(misdirected.name);
    const uint64_t counted = scene.count(misdirected.counter);
    const uint64_t dropped = drops(scene.device);
    scene.send(misdirected.segment);
    CHECK(scene.count(misdirected.counter) == counted + 1);
    CHECK(drops(scene.device) == dropped + 1);
    CHECK(scene.is_untouched());
    const auto error = scene.target.qp.poll_error();
    REQUIRE(error.has_value());
    CHECK(error->peer == scene.stranger.address());
    CHECK_FALSE(error->reported);
    CHECK(error->opcode == kWriteRecord);
    CHECK(error->msn == 1);
    CHECK(error->stag == misdirected.segment.stag);
    CHECK(error->tagged_offset == misdirected.segment.tagged_offset);
  }
  CHECK(scene.records().empty());
  CHECK(scene.target.qp.open_records().empty());
  CHECK(scene.target.qp.state() == QpState::rts);
  // The same message number is still free for a good one.
  scene.send(aimed(high.rkey(), ~uint64_t{0} - 100, 0, 100, 100));
  CHECK(scene.records().size() == 1);
}

TEST_CASE("a region that goes while a record is open on it is not written any more") {
  RecordScene scene;
  auto other = std::make_unique<MemoryRegion>(scene.target.pd, std::span(scene.target.memory),
                                              kWritable, kBase);
  Segment segment = scene.part(1, 0, 100, 300);
  segment.stag = other->rkey();
  scene.send(segment);
  const auto memory = scene.target.memory;
  other.reset();
  segment = scene.part(1, 100, 100, 300);
  segment.stag = scene.target.qp.open_records().at(0).stag;
  scene.send(segment);
  CHECK(scene.count("drop_stag") == 1);
  CHECK(scene.target.memory == memory);
  scene.world.advance(100ms);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(ranges_of(records[0].validity) == Ranges{{0, 100}});
}

TEST_CASE("records are told apart by address, port, incarnation and message number") {
  RecordScene scene;
  Stranger other(scene.world);
  Segment segment = scene.part(1, 0, 10, 20, 100);
  scene.send(segment);
  scene.send(other, scene.part(1, 0, 10, 20, 200));
  segment = scene.part(1, 0, 10, 20, 300);
  segment.incarnation = 2;
  scene.send(segment);
  scene.send(scene.part(2, 0, 10, 20, 400));
  CHECK(scene.target.qp.open_records().size() == 4);
  CHECK(drops(scene.device) == 0);
  segment = scene.part(1, 10, 10, 20, 300);
  segment.incarnation = 2;
  scene.send(segment);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].tagged_offset == kBase + 300);
}

TEST_CASE("guessing STags finds nothing, is counted, and leaves nothing behind") {
  RecordScene scene({.memory = 4096});
  Segment segment = scene.whole(0, 64);
  std::fill(segment.payload.begin(), segment.payload.end(), std::byte{0xBD});
  Random random(3);
  constexpr uint32_t kGuesses = 20'000;
  for (uint32_t i = 0; i < kGuesses; ++i) {
    segment.msn = i;
    do segment.stag = static_cast<uint32_t>(random.next());
    while (segment.stag == scene.region.rkey() || segment.stag == scene.target.mr.rkey());
    scene.stranger.send(scene.target.address(), segment);
    if (i % 1000 == 0) scene.world.settle();
  }
  scene.world.settle();
  // In a time that stands still: as many as a source may miss within a second.
  CHECK(scene.count("drop_stag") == 100);
  CHECK(scene.count("drop_stag_limit") == kGuesses - 100);
  CHECK(scene.is_untouched());
  CHECK(scene.records().empty());
  CHECK(scene.target.qp.open_records().empty());
  scene.world.advance(1s);
  scene.send(scene.whole(5, 64));  // a number that was guessed with is not spoilt
  CHECK(scene.records().size() == 1);
}

namespace {

/// The rules of records, byte by byte.
class Model {
 public:
  explicit Model(std::vector<std::byte> contents) : memory(std::move(contents)) {}

  /// True if the segment is to be placed; then it is placed here as well.
  bool take(const Segment& segment) {
    const auto key = std::pair(segment.incarnation, segment.msn);
    if (closed.contains(key)) return false;
    const uint64_t base = segment.tagged_offset - segment.offset;
    const uint32_t length = *segment.message_length;
    if (base < kBase || base - kBase + length > memory.size()) return false;
    const auto found = open.try_emplace(key, Record{base, length, std::vector<bool>(length)});
    Record& record = found.first->second;
    if (record.base != base || record.length != length) return false;
    const size_t size = segment.payload.size();
    for (size_t i = 0; i < size; ++i)
      if (record.valid[segment.offset + i]) return false;
    for (size_t i = 0; i < size; ++i) {
      record.valid[segment.offset + i] = true;
      memory[segment.tagged_offset - kBase + i] = segment.payload[i];
    }
    return true;
  }
  void close(uint32_t incarnation, uint32_t msn) {
    closed.insert({incarnation, msn});
    open.erase({incarnation, msn});
  }

  struct Record {
    uint64_t base;
    uint32_t length;
    std::vector<bool> valid;
  };
  std::vector<std::byte> memory;
  std::map<std::pair<uint32_t, uint32_t>, Record> open;
  std::set<std::pair<uint32_t, uint32_t>> closed;
};

}  // namespace

TEST_CASE("whatever segments come, memory and reports are what the rules make of them") {
  const uint64_t seed = GENERATE(range(uint64_t{1}, uint64_t{9}));
  CAPTURE(seed);
  PartyOptions options{.memory = 600};
  options.datagram.max_open_records = 10'000;
  options.datagram.max_open_records_per_source = 10'000;
  options.datagram.stag_misses_per_source = 10'000;
  options.datagram.stag_misses = 10'000;
  RecordScene scene(options);
  Model model(scene.target.memory);
  Random random(seed);
  size_t placed = 0;
  std::vector<Segment> sent;
  for (int i = 0; i < 3000; ++i) {
    Segment segment;
    if (!sent.empty() && random.below(8) == 0) {
      segment = sent[random.below(sent.size())];
    } else {
      const auto slot = static_cast<uint32_t>(random.below(40));
      const uint32_t msn = static_cast<uint32_t>(i / 300) * 20 + slot;
      const auto length = static_cast<uint32_t>(20 + (random.below(30) == 0 ? slot + 1 : slot));
      const auto offset = static_cast<uint32_t>(random.below(length));
      const auto size = static_cast<uint32_t>(1 + random.below(std::min(length - offset, 12U)));
      const uint64_t at = random.below(30) == 0 ? random.below(620) : slot * 14;
      segment = scene.part(msn, offset, size, length, at);
      segment.incarnation = static_cast<uint32_t>(1 + random.below(2));
      segment.immediate = uint64_t{segment.incarnation} << 32 | msn;  // tells which it was
    }
    segment.payload = pattern(segment.payload.size(), random.next());
    sent.push_back(segment);
    placed += model.take(segment) ? 1 : 0;
    scene.send(segment);
    REQUIRE(scene.target.memory == model.memory);
    if (random.below(200) == 0) scene.world.advance(100ms);
    for (const WorkCompletion& record : scene.records()) {
      const auto found = model.open.find(
          {static_cast<uint32_t>(record.immediate >> 32), static_cast<uint32_t>(record.immediate)});
      REQUIRE(found != model.open.end());
      REQUIRE(record.tagged_offset == found->second.base);
      REQUIRE(record.byte_count == found->second.length);
      for (uint32_t at = 0; at < record.byte_count; ++at)
        REQUIRE(record.validity.contains(at, 1) == found->second.valid[at]);
      model.close(found->first.first, found->first.second);
    }
    REQUIRE(scene.target.qp.open_records().size() == model.open.size());
  }
  CHECK(placed > 100);
  CHECK(scene.count("drop_contradiction") > 10);
  CHECK(scene.count("drop_duplicate") > 10);
  CHECK(scene.count("drop_late") > 10);
  CHECK(scene.count("drop_bounds") > 1);
}

}  // namespace diwarp::test
