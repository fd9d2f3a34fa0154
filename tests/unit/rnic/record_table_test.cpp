// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/record_table.h"

#include <chrono>
#include <string>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

namespace fault = rdmap::fault;
using Segment = rdmap::DatagramSegment;

constexpr uint64_t kBase = 1000;
constexpr Duration kTimeout = 100ms;

DatagramOptions options(RecordCompletion policy = RecordCompletion::complete) {
  DatagramOptions all;
  all.record_completion = policy;
  all.record_timeout = kTimeout;
  all.max_open_records = 4;
  all.max_open_records_per_source = 3;
  return all;
}

/// A peer queue pair, and how many records are open at its address.
struct Peer {
  explicit Peer(const char* address, uint32_t* of_address = nullptr)
      : source({.address = Address::parse(address, 7), .incarnation = 1}, ddp::ClosedMessages()) {
    source.records_of_address = of_address != nullptr ? of_address : &own;
  }
  uint32_t own = 0;
  RecordSource source;
};

struct Fixture : Memory {
  explicit Fixture(const DatagramOptions& chosen = options(), bool timed = true,
                   uint32_t entries = 64)
      : receives(8, entries),
        table({protection, receives.buffers, receives.cq, counters}, chosen, timed) {}

  /// The segment with `text` at `offset` of a message of `length` bytes, which begins at the
  /// region's byte `at`.
  Segment segment(uint32_t msn, uint32_t length, uint32_t offset, std::string_view text,
                  uint64_t at = 0) {
    Segment made;
    made.opcode = rdmap::Opcode::write_record;
    made.msn = msn;
    made.message_length = length;
    made.message_offset = offset;
    made.stag = region;
    made.tagged_offset = kBase + at + offset;
    made.payload = bytes_of(text);
    made.last = offset + text.size() == length;
    return made;
  }
  Verdict take(const Segment& segment) { return table.handle(segment, peer.source, now); }
  Verdict take(uint32_t msn, uint32_t length, uint32_t offset, std::string_view text,
               uint64_t at = 0) {
    return take(segment(msn, length, offset, text, at));
  }
  /// Opens a record of two bytes of which the first has come.
  void open(Peer& by, uint32_t msn) {
    REQUIRE_FALSE(table.handle(segment(msn, 2, 0, "x", 200), by.source, now).drop);
  }
  std::vector<WorkCompletion> reported() {
    table.report(receives.cq);
    return receives.poll();
  }
  std::vector<uint32_t> open_msns() {
    std::vector<uint32_t> all;
    for (const OpenRecord& record : table.open()) all.push_back(record.msn);
    return all;
  }

  Time now = kNow;
  Counters counters;
  Receives receives;
  STag region = add(0, Canvas::kSize, Access::local_write | Access::remote_write, kBase);
  RecordTable table;
  Peer peer{"10.0.0.1"};
};

using Msns = std::vector<uint32_t>;

}  // namespace

TEST_CASE(
    "records: segments in any order are placed where they say, and reported when all are there") {
  Fixture f;
  CHECK_FALSE(f.take(1, 9, 6, "ghi", 10).drop);
  CHECK_FALSE(f.take(1, 9, 0, "abc", 10).drop);
  CHECK(f.reported().empty());
  Segment middle = f.segment(1, 9, 3, "def", 10);
  CHECK_FALSE(f.take(middle).drop);
  CHECK(f.canvas.has_only(10, "abcdefghi"));
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].opcode == WcOpcode::recv_write_record);
  CHECK(done[0].wr_id == 0);
  CHECK(done[0].stag == f.region);
  CHECK(done[0].tagged_offset == kBase + 10);
  CHECK(done[0].byte_count == 9);
  CHECK(done[0].valid_bytes == 9);
  CHECK(done[0].validity.complete());
  CHECK(done[0].source == f.peer.source.key.address);
  CHECK(done[0].qp_number == kQueuePair);
  CHECK(f.table.open_count() == 0);
  CHECK(f.counters.get(Counter::records_completed) == 1);
}

TEST_CASE(
    "records: nothing is written twice, neither of an open record nor of one that was reported") {
  Fixture f;
  REQUIRE_FALSE(f.take(1, 6, 0, "abc").drop);
  CHECK(f.take(1, 6, 0, "xyz").drop == Counter::drop_duplicate);
  REQUIRE_FALSE(f.take(1, 6, 3, "def").drop);
  CHECK(f.take(1, 6, 3, "xyz").drop == Counter::drop_late);
  CHECK(f.canvas.has_only(0, "abcdef"));
}

TEST_CASE(
    "records: segments that overlap in part, or tell of another message, are contradictions") {
  Fixture f;
  REQUIRE_FALSE(f.take(1, 9, 0, "abc").drop);
  CHECK(f.take(1, 9, 2, "xyz").drop == Counter::drop_contradiction);
  CHECK(f.take(1, 8, 3, "xyz").drop == Counter::drop_contradiction);      // another length
  CHECK(f.take(1, 9, 3, "xyz", 50).drop == Counter::drop_contradiction);  // another place
  Segment other = f.segment(1, 9, 3, "xyz");
  other.has_immediate = true;
  CHECK(f.take(other).drop == Counter::drop_contradiction);
  other = f.segment(1, 9, 3, "xyz");
  other.record_solicited = true;
  CHECK(f.take(other).drop == Counter::drop_contradiction);
  other = f.segment(1, 9, 3, "xyz");
  other.stag ^= 1;
  CHECK(f.take(other).drop == Counter::drop_contradiction);
  CHECK(f.canvas.has_only(0, "abc"));
}

TEST_CASE("records: each segment is checked against the memory of the whole message") {
  Fixture f;
  // The segment's own bytes lie inside the region, and the message's end does not.
  const Verdict beyond = f.take(1, 10, 0, "abc", Canvas::kSize - 9);
  CHECK(beyond.drop == Counter::drop_bounds);
  CHECK(beyond.fault == TerminateCode{1, 1, 1});
  Segment before = f.segment(2, 10, 6, "abc");
  before.tagged_offset = kBase + 5;  // the message begins before the region
  CHECK(f.take(before).fault == fault::kTaggedBaseOrBounds);
  CHECK(f.canvas.untouched());
  CHECK(f.table.open_count() == 0);
  CHECK_FALSE(f.take(3, 9, 0, "abc", Canvas::kSize - 9).drop);
}

TEST_CASE("records: of several faults the first in the order of RFC 5041 is told") {
  Fixture f;
  const auto found = [&](STag stag, uint64_t offset, uint32_t length) {
    Segment segment = f.segment(1, length, 0, "ab");
    segment.stag = stag;
    segment.tagged_offset = offset;
    const Verdict verdict = f.take(segment);
    REQUIRE(verdict.drop);
    REQUIRE(verdict.fault);
    return std::pair(*verdict.drop, *verdict.fault);
  };
  const STag foreign = f.add(0, 10, Access::none, 0, kDomain + 1);
  const STag closed = f.add(0, 10, Access::remote_read);
  const auto stag_fault = [](TerminateCode code) { return std::pair(Counter::drop_stag, code); };
  CHECK(found(f.region ^ 1, UINT64_MAX, 2) == stag_fault({1, 1, 0}));
  CHECK(found(foreign, UINT64_MAX, 2) == stag_fault({1, 1, 2}));
  CHECK(found(closed, UINT64_MAX, 2) == std::pair(Counter::drop_access, TerminateCode{0, 1, 2}));
  CHECK(found(f.region, UINT64_MAX, 2) == std::pair(Counter::drop_bounds, TerminateCode{1, 1, 3}));
  CHECK(found(f.region, kBase - 1, 2) == std::pair(Counter::drop_bounds, TerminateCode{1, 1, 1}));
  CHECK(f.canvas.untouched());
  CHECK(f.table.open_count() == 0);
}

TEST_CASE(
    "records: memory that goes between two segments is not written, and its valid bytes are told") {
  Fixture f;
  REQUIRE_FALSE(f.take(1, 6, 0, "abc").drop);
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.take(1, 6, 3, "def").fault == fault::kTaggedInvalidStag);
  CHECK(f.canvas.has_only(0, "abc"));
  f.table.close_on(f.region);
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].valid_bytes == 3);
  CHECK(f.counters.get(Counter::records_partial) == 1);
}

TEST_CASE("records: a region may want its sources to show their address first, over UD") {
  Fixture f;
  f.region =
      f.add(0, 100, Access::local_write | Access::remote_write | Access::validated_source, kBase);
  const Verdict verdict = f.take(1, 3, 0, "abc");
  CHECK(verdict.drop == Counter::drop_unvalidated);
  CHECK(verdict.fault == fault::kAccessRights);
  CHECK(f.canvas.untouched());
  f.peer.source.validated_until = f.now;
  CHECK(f.take(1, 3, 0, "abc").drop);  // until then, and not at that time any more
  f.peer.source.validated_until = f.now + 1ns;
  CHECK_FALSE(f.take(1, 3, 0, "abc").drop);
  Fixture rd(options(), false);
  rd.region =
      rd.add(0, 100, Access::local_write | Access::remote_write | Access::validated_source, kBase);
  CHECK_FALSE(rd.take(1, 3, 0, "abc").drop);
}

TEST_CASE("records: a record of no bytes is complete at once, and names memory all the same") {
  Fixture f;
  CHECK_FALSE(f.take(1, 0, 0, "", Canvas::kSize).drop);
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].byte_count == 0);
  CHECK(done[0].validity.complete());
  CHECK(f.take(1, 0, 0, "").drop == Counter::drop_late);
  CHECK(f.take(2, 0, 0, "", Canvas::kSize + 1).drop == Counter::drop_bounds);
}

TEST_CASE("records: an empty segment may end a record, and is no progress") {
  Fixture f(options(RecordCompletion::last_segment));
  REQUIRE_FALSE(f.take(1, 6, 0, "abc").drop);
  f.now += kTimeout / 2;
  Segment end = f.segment(1, 6, 6, "");
  CHECK_FALSE(f.take(end).drop);
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].validity.first_gap() == ValidityMap::Range{3, 3});
  Fixture complete;
  REQUIRE_FALSE(complete.take(1, 6, 0, "abc").drop);
  complete.now += kTimeout / 2;
  CHECK_FALSE(complete.take(1, 6, 6, "").drop);
  CHECK(complete.take(1, 6, 6, "").drop == Counter::drop_duplicate);
  complete.table.expire(kNow + kTimeout);
  CHECK(complete.reported().size() == 1);
}

TEST_CASE("records: with its last segment a record is reported as it is, if that is wanted") {
  Fixture f(options(RecordCompletion::last_segment));
  REQUIRE_FALSE(f.take(1, 9, 0, "abc").drop);
  REQUIRE_FALSE(f.take(1, 9, 6, "ghi").drop);
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].valid_bytes == 6);
  CHECK(done[0].validity.first_gap() == ValidityMap::Range{3, 3});
  CHECK(f.take(1, 9, 3, "def").drop == Counter::drop_late);
  CHECK(f.counters.get(Counter::records_partial) == 1);
}

TEST_CASE("records: segments may be reported by themselves, and are remembered by nobody") {
  Fixture f(options(RecordCompletion::per_segment));
  Segment segment = f.segment(1, 9, 3, "def", 10);
  segment.has_immediate = true;
  segment.immediate = 99;
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(f.take(segment).drop);
    const auto done = f.reported();
    REQUIRE(done.size() == 1);
    CHECK(done[0].tagged_offset == kBase + 13);
    CHECK(done[0].byte_count == 3);
    CHECK(done[0].has_immediate);
    CHECK(done[0].immediate == 99);
  }
  CHECK(f.canvas.has_only(13, "def"));
  CHECK(f.table.open_count() == 0);
  CHECK(f.peer.source.is_proven());
}

TEST_CASE("records: MSNs go on beyond 32 bits, and records long over stay over") {
  Fixture f;
  for (uint32_t i = 0; i < 6; ++i) CHECK_FALSE(f.take(UINT32_MAX - 2 + i, 1, 0, "a", i).drop);
  CHECK(f.reported().size() == 6);
  CHECK(f.canvas.has_only(0, "aaaaaa"));
  for (uint32_t i = 0; i < 6; ++i)
    CHECK(f.take(UINT32_MAX - 2 + i, 1, 0, "b", i).drop == Counter::drop_late);
}

TEST_CASE("records: a record without progress for long is reported as it is, and not before") {
  Fixture f;
  CHECK(f.table.next_expiry() == Time::max());
  REQUIRE_FALSE(f.take(1, 9, 0, "abc").drop);
  f.now += 30ms;
  REQUIRE_FALSE(f.take(2, 9, 0, "abc", 20).drop);
  f.now += 30ms;
  REQUIRE_FALSE(f.take(1, 9, 3, "def").drop);
  CHECK(f.table.next_expiry() == kNow + 30ms + kTimeout);
  f.table.expire(kNow + 30ms + kTimeout - 1ns);
  CHECK(f.table.open_count() == 2);
  f.table.expire(kNow + 30ms + kTimeout);
  CHECK(f.open_msns() == Msns{1});
  CHECK(f.counters.get(Counter::message_timeouts) == 1);
  CHECK(f.table.next_expiry() == kNow + 60ms + kTimeout);
}

TEST_CASE("records: a timeout that never comes does not wrap, and over RD there is none") {
  DatagramOptions forever = options();
  forever.record_timeout = Duration::max();
  Fixture f(forever);
  REQUIRE_FALSE(f.take(1, 9, 0, "abc").drop);
  CHECK(f.table.next_expiry() == Time::max());
  f.table.expire(kNow + 1000h);
  CHECK(f.table.open_count() == 1);
  Fixture rd(options(), false);
  REQUIRE_FALSE(rd.take(1, 9, 0, "abc").drop);
  CHECK(rd.table.next_expiry() == Time::max());
  rd.table.expire(kNow + 1000h);
  CHECK(rd.table.open_count() == 1);
}

TEST_CASE(
    "records: a source's own record that is longest without progress makes room for its next") {
  Fixture f;
  for (uint32_t msn = 1; msn <= 3; ++msn) REQUIRE_FALSE(f.take(msn, 9, 0, "abc", 20 * msn).drop);
  REQUIRE_FALSE(f.take(1, 9, 3, "def", 20).drop);  // progress: now 2 is the oldest
  REQUIRE_FALSE(f.take(4, 9, 0, "abc", 80).drop);
  CHECK(f.open_msns() == Msns{3, 1, 4});
  CHECK(f.counters.get(Counter::records_evicted) == 1);
  CHECK(f.reported().size() == 1);
  CHECK(f.take(2, 9, 3, "def", 40).drop == Counter::drop_late);
  CHECK(f.peer.own == 3);
}

TEST_CASE("records: in a full table one of an unproven source gives way first") {
  Fixture f;
  Peer proven("10.0.0.2"), unproven("10.0.0.3"), last("10.0.0.4");
  proven.source.finished = true;
  f.peer.source.finished = true;
  f.open(proven, 1);
  f.open(proven, 2);
  f.open(f.peer, 3);
  f.open(unproven, 4);
  f.open(last, 5);
  CHECK(f.open_msns() == Msns{1, 2, 3, 5});
}

TEST_CASE(
    "records: of proven sources the address with most gives one up, unless that would trade "
    "places") {
  Fixture f;
  uint32_t crowded = 0;
  Peer first("10.0.0.2", &crowded), second("10.0.0.2", &crowded), other("10.0.0.3");
  for (Peer* peer : {&first, &second, &other, &f.peer}) peer->source.finished = true;
  f.open(other, 1);
  f.open(first, 2);
  f.open(second, 3);
  f.open(f.peer, 4);
  Peer newcomer("10.0.0.5");
  newcomer.source.finished = true;
  f.open(newcomer, 5);  // it has none, the crowded address two
  CHECK(f.open_msns() == Msns{1, 3, 4, 5});
  f.open(newcomer, 6);  // nobody has two more than it: its own oldest goes
  CHECK(f.open_msns() == Msns{1, 3, 4, 6});
  CHECK(crowded == 1);
  CHECK(newcomer.own == 1);
}

TEST_CASE("records: while as many wait to be reported as may be open, none opens") {
  Fixture f(options(), true, 1);
  for (uint32_t msn = 1; msn <= 5; ++msn) REQUIRE_FALSE(f.take(msn, 1, 0, "a", msn).drop);
  // One lies in the completion queue, four wait.
  CHECK_FALSE(f.table.has_room());
  CHECK(f.take(6, 1, 0, "a", 6).drop == Counter::drop_no_context);
  CHECK(*f.canvas.at(6) == Canvas::kUntouched);
  CHECK(f.receives.poll().size() == 1);
  CHECK(f.table.has_room());
  CHECK_FALSE(f.take(6, 1, 0, "a", 6).drop);
}

TEST_CASE("records: a record waits until the receives are reported that were completed before it") {
  Fixture f;
  for (uint64_t id = 1; id <= 2; ++id) REQUIRE_FALSE(f.receives.post(id));
  ReceiveOutcome done;
  f.receives.buffers.complete(*f.receives.buffers.take_receive(), done);
  REQUIRE_FALSE(f.take(1, 1, 0, "a").drop);
  f.receives.buffers.complete(*f.receives.buffers.take_receive(), done);
  CHECK(f.table.receives_first() == uint64_t{1});
  CHECK(f.reported().empty());
  f.receives.buffers.report(f.receives.cq, 1, kQueuePair);
  const auto all = f.reported();
  REQUIRE(all.size() == 2);
  CHECK(all[0].wr_id == 1);
  CHECK(all[1].opcode == WcOpcode::recv_write_record);
  CHECK_FALSE(f.table.receives_first());
}

TEST_CASE("records: those on one STag end, and those on others go on") {
  Fixture f;
  REQUIRE_FALSE(f.take(1, 9, 0, "abc").drop);
  const STag first = f.region;
  f.region = f.add(0, 100, kAllRights, kBase);
  REQUIRE_FALSE(f.take(2, 9, 0, "abc").drop);
  f.table.close_on(first);
  CHECK(f.open_msns() == Msns{2});
  f.table.close(f.peer.source, 7);  // not there
  CHECK(f.table.open_count() == 1);
  f.table.close(f.peer.source, 2);
  CHECK(f.table.open_count() == 0);
  CHECK(f.reported().size() == 2);
}

TEST_CASE("records: one that may be sent once more begins anew with its first segment alone") {
  Fixture f(options(), false);
  REQUIRE_FALSE(f.take(1, 9, 0, "abc").drop);
  f.table.restart_of(f.peer.source);
  CHECK(f.take(1, 9, 2, "c").drop == Counter::drop_duplicate);  // not the first segment
  CHECK_FALSE(f.take(1, 9, 0, "ABC").drop);
  CHECK(f.take(1, 9, 0, "xyz").drop == Counter::drop_duplicate);
  CHECK_FALSE(f.take(1, 9, 3, "defghi").drop);
  CHECK(f.canvas.has_only(0, "ABCdefghi"));
  CHECK(f.reported().at(0).validity.complete());
}

TEST_CASE("records: a segment that would add one range too many is not placed") {
  DatagramOptions narrow = options();
  narrow.max_record_ranges = 2;
  Fixture f(narrow);
  REQUIRE_FALSE(f.take(1, 9, 0, "a").drop);
  REQUIRE_FALSE(f.take(1, 9, 2, "c").drop);
  CHECK(f.take(1, 9, 4, "e").drop == Counter::drop_range_limit);
  CHECK_FALSE(f.take(1, 9, 1, "b").drop);
  CHECK_FALSE(f.take(1, 9, 4, "e").drop);
  f.canvas.at(3)[0] = std::byte{'d'};
  CHECK(f.canvas.has_only(0, "abcde"));
}

TEST_CASE("records: only so many have several ranges, those in the application's hands included") {
  DatagramOptions few = options();
  few.max_validity_maps = 1;
  Fixture f(few);
  REQUIRE_FALSE(f.take(1, 9, 0, "a", 0).drop);
  REQUIRE_FALSE(f.take(1, 9, 2, "c", 0).drop);
  REQUIRE_FALSE(f.take(2, 9, 0, "a", 20).drop);
  CHECK(f.take(2, 9, 2, "c", 20).drop == Counter::drop_range_limit);
  CHECK_FALSE(f.take(2, 9, 1, "b", 20).drop);  // still one range
  f.table.close(f.peer.source, 1);
  auto kept = f.reported();
  CHECK(f.take(2, 9, 4, "e", 20).drop == Counter::drop_range_limit);
  kept.clear();
  CHECK_FALSE(f.take(2, 9, 4, "e", 20).drop);
}

TEST_CASE("records: a reset forgets what is open and what waits, and the address's count") {
  Fixture f;
  REQUIRE_FALSE(f.take(1, 1, 0, "a").drop);
  REQUIRE_FALSE(f.take(2, 9, 0, "abc", 10).drop);
  f.table.reset();
  CHECK(f.reported().empty());
  CHECK(f.table.open_count() == 0);
  CHECK(f.peer.own == 0);
  CHECK(f.peer.source.open_records == 0);
  CHECK(f.table.next_expiry() == Time::max());
  CHECK_FALSE(f.take(2, 9, 0, "xyz", 10).drop);
}

TEST_CASE("records: a meter tells how many are open, in all tables of a device") {
  Fixture f;
  const auto open = [&] { return f.counters.get(Meter::open_records); };
  f.open(f.peer, 1);
  f.open(f.peer, 2);
  CHECK(open() == 2);
  REQUIRE_FALSE(f.take(1, 2, 1, "y", 200).drop);
  CHECK(open() == 1);
  REQUIRE_FALSE(f.take(3, 2, 0, "xy").drop);
  CHECK(open() == 1);
  f.table.close(f.peer.source, 2);
  CHECK(open() == 0);
  f.open(f.peer, 4);
  f.table.reset();
  CHECK(open() == 0);
}
