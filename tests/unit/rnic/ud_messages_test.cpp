// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_messages.h"

#include <chrono>
#include <string>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "rdmap/terminate.h"
#include "rnic/datagram/record_table.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

namespace fault = rdmap::fault;
using Segment = rdmap::DatagramSegment;

constexpr Duration kTimeout = 100ms;

DatagramOptions options(uint32_t open = 4, uint32_t per_source = 2) {
  DatagramOptions all;
  all.message_timeout = kTimeout;
  all.max_open_messages = open;
  all.max_open_per_source = per_source;
  all.stag_misses_per_source = 2;
  return all;
}

Segment send(uint32_t msn, uint32_t offset, std::string_view text, bool last) {
  Segment segment;
  segment.msn = msn;
  segment.message_offset = offset;
  segment.payload = bytes_of(text);
  segment.last = last;
  return segment;
}
/// A message in one segment.
Segment whole(uint32_t msn, std::string_view text) { return send(msn, 0, text, true); }
/// Its first segment, when more are to come.
Segment first(uint32_t msn, std::string_view text = "ab") { return send(msn, 0, text, false); }

struct Fixture : Memory {
  explicit Fixture(const DatagramOptions& chosen = options(), uint32_t depth = 16)
      : receives(depth),
        records({protection, receives.buffers, receives.cq, counters}, chosen, true),
        misses(chosen.stag_misses_per_source, chosen.stag_misses, chosen.source_timeout),
        messages(receives.buffers, protection, records, misses, logged, chosen) {}

  Source& source(const char* host, uint16_t port = 7) {
    Counter reason{};
    return *sources.find_or_add({Address::parse(host, port), 1}, kNow, reason);
  }
  Source& proven(const char* host, uint16_t port = 7) {
    Source& made = source(host, port);
    made.finished = true;
    return made;
  }
  Verdict take(const Segment& segment) { return messages.handle(segment, peer, now); }
  void post(uint64_t wr_id, size_t offset, size_t length) {
    REQUIRE_FALSE(receives.post(wr_id, sge(region, offset, length)));
  }
  /// So many receives of ten bytes, whose wr_ids begin at 1.
  void post_many(uint64_t count) {
    for (uint64_t id = 1; id <= count; ++id) post(id, id * 10, 10);
  }

  Time now = kNow;
  Counters counters;
  LoggedCounters logged{counters};
  Receives receives;
  STag region = add(0, Canvas::kSize);
  RecordTable records;
  StagMissLimit misses;
  SourceTable sources{SourceLimits{}, SipKey{1, 2}};
  UdMessages messages;
  Source& peer = source("10.0.0.1");
};

}  // namespace

TEST_CASE("ud messages: a message of one segment takes the next receive, and that only") {
  Fixture f;
  f.post(1, 10, 10);
  f.post(2, 30, 10);
  CHECK_FALSE(f.take(whole(5, "abc")).drop);
  CHECK(f.canvas.has_only(10, "abc"));
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 1);
  CHECK(done[0].byte_count == 3);
  CHECK(done[0].source == f.peer.key.address);
  CHECK(f.take(whole(5, "xyz")).drop == Counter::drop_late);
  CHECK(f.receives.next() == 2);
}

TEST_CASE("ud messages: without a receive a message is dropped, and may come again") {
  Fixture f;
  for (const Segment& segment : {whole(5, "abc"), first(5)}) {
    const Verdict verdict = f.take(segment);
    CHECK(verdict.drop == Counter::drop_no_receive);
    CHECK(verdict.fault == TerminateCode{1, 2, 2});
  }
  f.post(1, 0, 10);
  CHECK_FALSE(f.take(whole(5, "abc")).drop);
}

TEST_CASE("ud messages: a message that is longer than the receive is over, and the receive stays") {
  Fixture f;
  f.post(1, 0, 3);
  const Verdict verdict = f.take(whole(5, "abcd"));
  CHECK(verdict.drop == Counter::drop_receive_too_small);
  CHECK(verdict.fault == TerminateCode{1, 2, 5});
  CHECK(f.canvas.untouched());
  CHECK(f.receives.next() == 1);
  CHECK(f.take(whole(5, "abc")).drop == Counter::drop_late);
  CHECK_FALSE(f.take(whole(6, "abc")).drop);
}

TEST_CASE("ud messages: a message of no bytes takes a receive, even one without room") {
  Fixture f;
  REQUIRE_FALSE(f.receives.post(1));
  CHECK_FALSE(f.take(whole(5, "")).drop);
  CHECK(f.receives.reported().at(0).byte_count == 0);
}

TEST_CASE("ud messages: a receive whose memory has gone is completed, whatever the segment is") {
  for (const Segment& segment : {whole(5, "abc"), first(5)}) {
    Fixture f;
    f.post(1, 0, 10);
    f.post(2, 20, 10);
    REQUIRE(f.stags.erase(f.region));
    CHECK_FALSE(f.take(segment).fault);  // the source is not to blame
    CHECK(f.take(segment).drop == Counter::drop_late);
    CHECK(f.canvas.untouched());
    const auto done = f.receives.reported();
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == WcStatus::local_protection_error);
    CHECK(f.receives.next() == 2);
  }
}

TEST_CASE("ud messages: segments come in any order, and each is placed once") {
  Fixture f;
  f.post(1, 10, 10);
  CHECK_FALSE(f.take(send(5, 6, "ghi", true)).drop);
  CHECK_FALSE(f.take(send(5, 0, "abc", false)).drop);
  CHECK(f.take(send(5, 0, "xyz", false)).drop == Counter::drop_duplicate);
  CHECK(f.receives.reported().empty());
  CHECK_FALSE(f.take(send(5, 3, "def", false)).drop);
  CHECK(f.canvas.has_only(10, "abcdefghi"));
  CHECK(f.receives.reported().at(0).byte_count == 9);
  CHECK(f.take(send(5, 3, "def", false)).drop == Counter::drop_late);
}

TEST_CASE("ud messages: an empty last segment tells the length, and ends the message") {
  Fixture f;
  f.post(1, 10, 10);
  REQUIRE_FALSE(f.take(first(5, "abc")).drop);
  CHECK(f.take(send(5, 3, "", false)).drop == Counter::drop_duplicate);  // it tells nothing
  CHECK_FALSE(f.take(send(5, 3, "", true)).drop);
  CHECK(f.receives.reported().at(0).byte_count == 3);
}

TEST_CASE("ud messages: segments of one message agree in what they say of it") {
  Fixture f;
  f.post(1, 10, 10);
  REQUIRE_FALSE(f.take(first(5, "abc")).drop);
  Segment other = send(5, 3, "def", true);
  other.opcode = rdmap::Opcode::send_solicited;
  CHECK(f.take(other).drop == Counter::drop_contradiction);
  other = send(5, 3, "def", true);
  other.has_immediate = true;
  CHECK(f.take(other).drop == Counter::drop_contradiction);
  CHECK(f.take(send(5, 2, "cd", false)).drop == Counter::drop_contradiction);  // in part
  CHECK(f.take(send(5, 0, "ab", true)).drop == Counter::drop_contradiction);   // an end within
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK_FALSE(f.take(send(5, 3, "def", true)).drop);
}

TEST_CASE("ud messages: a message that turns out too long gives its receive back to the head") {
  Fixture f;
  f.post(1, 10, 5);
  f.post(2, 30, 10);
  REQUIRE_FALSE(f.take(first(5, "abc")).drop);
  CHECK(f.receives.next() == 2);
  const Verdict verdict = f.take(send(5, 3, "def", true));
  CHECK(verdict.drop == Counter::drop_receive_too_small);
  CHECK(verdict.fault == fault::kMessageTooLong);
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.receives.next() == 1);
  CHECK(f.take(send(5, 3, "de", true)).drop == Counter::drop_late);
}

TEST_CASE("ud messages: memory that goes between two segments ends the message with an error") {
  Fixture f;
  f.post(1, 10, 10);
  REQUIRE_FALSE(f.take(first(5, "abc")).drop);
  REQUIRE(f.protection.invalidate(f.region) == ddp::RegionFault::none);
  CHECK_FALSE(f.take(send(5, 3, "def", true)).fault);
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.receives.reported().at(0).status == WcStatus::local_protection_error);
  CHECK(f.take(send(5, 3, "def", true)).drop == Counter::drop_late);
  CHECK(f.peer.open_count == 0);
}

TEST_CASE("ud messages: MSNs go on beyond 32 bits, and old ones stay over") {
  Fixture f;
  f.post_many(8);
  for (uint32_t i = 0; i < 8; ++i) CHECK_FALSE(f.take(whole(UINT32_MAX - 3 + i, "a")).drop);
  for (uint32_t i = 0; i < 8; ++i)
    CHECK(f.take(whole(UINT32_MAX - 3 + i, "b")).drop == Counter::drop_late);
  CHECK(f.receives.reported().size() == 8);
}

TEST_CASE(
    "ud messages: an open message is finished though newer ones have pushed it out of memory") {
  Fixture f;
  SourceTable brief({.closed = 2}, SipKey{3, 4});
  Counter reason{};
  Source& peer = *brief.find_or_add({Address::parse("10.0.0.9:7"), 1}, kNow, reason);
  const auto take = [&](const Segment& segment) {
    return f.messages.handle(segment, peer, f.now).drop;
  };
  f.post_many(8);
  REQUIRE_FALSE(take(first(1)));
  for (uint32_t msn = 2; msn <= 5; ++msn) REQUIRE_FALSE(take(whole(msn, "x")));
  CHECK(peer.closed.contains(1));  // as all at or below the floor
  CHECK_FALSE(take(send(1, 2, "cd", true)));
  CHECK(take(whole(2, "x")) == Counter::drop_late);
  CHECK(f.receives.reported().size() == 5);
}

TEST_CASE("ud messages: one source holds no more open messages than its share") {
  Fixture f;
  f.post_many(16);
  REQUIRE_FALSE(f.take(first(1)).drop);
  REQUIRE_FALSE(f.take(first(2)).drop);
  CHECK(f.take(first(3)).drop == Counter::drop_share);
  CHECK_FALSE(f.take(whole(4, "abc")).drop);  // which is never open
  CHECK_FALSE(f.messages.handle(first(1), f.source("10.0.0.2"), f.now).drop);
  REQUIRE_FALSE(f.take(send(1, 2, "cd", true)).drop);
  CHECK_FALSE(f.take(first(3)).drop);
}

TEST_CASE("ud messages: open messages hold no more than half of the receives") {
  Fixture f(options(16, 16));
  f.post_many(8);
  f.peer.finished = true;
  for (uint32_t msn = 1; msn <= 4; ++msn) REQUIRE_FALSE(f.take(first(msn)).drop);
  CHECK(f.take(first(5)).drop == Counter::drop_share);
  CHECK(f.receives.buffers.available() == 4);
  CHECK_FALSE(f.take(whole(6, "abc")).drop);
}

TEST_CASE("ud messages: of a single receive one open message may hold all") {
  Fixture f;
  f.post_many(1);
  CHECK_FALSE(f.take(first(1)).drop);
  CHECK(f.messages.handle(first(1), f.source("10.0.0.2"), f.now).drop == Counter::drop_no_receive);
}

TEST_CASE("ud messages: in a full table the oldest message of an unproven source gives way") {
  Fixture f(options(3, 3));
  f.post_many(16);
  Source& known = f.proven("10.0.0.2");
  REQUIRE_FALSE(f.messages.handle(first(1), known, f.now).drop);
  REQUIRE_FALSE(f.take(first(1)).drop);
  REQUIRE_FALSE(f.take(first(2)).drop);
  REQUIRE_FALSE(f.take(send(1, 2, "cd", false)).drop);  // so that 2 is the oldest
  Source& newcomer = f.source("10.0.0.3");
  CHECK_FALSE(f.messages.handle(first(1), newcomer, f.now).drop);
  CHECK(f.counters.get(Counter::messages_evicted) == 1);
  CHECK(f.take(send(2, 2, "cd", true)).drop == Counter::drop_late);
  CHECK_FALSE(f.take(send(1, 4, "e", true)).drop);
  CHECK_FALSE(f.messages.handle(send(1, 2, "cd", true), newcomer, f.now).drop);
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 2);
  CHECK(done[0].wr_id == 2);
  CHECK(done[1].wr_id == 3);  // the receive of the one that gave way
}

TEST_CASE("ud messages: an unproven source displaces no proven one") {
  Fixture f(options(2, 2));
  f.post_many(16);
  Source& known = f.proven("10.0.0.2");
  for (uint32_t msn = 1; msn <= 2; ++msn)
    REQUIRE_FALSE(f.messages.handle(first(msn), known, f.now).drop);
  CHECK(f.take(first(1)).drop == Counter::drop_no_context);
  // A proven one does, of the address that has most, but never to trade one place for another.
  Source& other = f.proven("10.0.0.3");
  CHECK_FALSE(f.messages.handle(first(1), other, f.now).drop);
  CHECK(f.messages.handle(first(2), other, f.now).drop == Counter::drop_no_context);
  CHECK(known.open_count == 1);
  CHECK(other.open_count == 1);
}

TEST_CASE("ud messages: a place that would only change hands is not taken") {
  Fixture f(options(3, 3));
  f.post_many(16);
  Source& one = f.proven("10.0.0.2");
  Source& other = f.proven("10.0.0.3");
  REQUIRE_FALSE(f.messages.handle(first(1), one, f.now).drop);
  REQUIRE_FALSE(f.messages.handle(first(2), one, f.now).drop);
  REQUIRE_FALSE(f.messages.handle(first(1), other, f.now).drop);
  CHECK(f.messages.handle(first(2), other, f.now).drop == Counter::drop_no_context);
  CHECK(one.open_count == 2);
}

TEST_CASE("ud messages: a place is not taken from the own address, whatever the port") {
  Fixture f(options(2, 2));
  f.post_many(16);
  Source& one = f.proven("10.0.0.2", 1);
  Source& other = f.proven("10.0.0.2", 2);
  for (uint32_t msn = 1; msn <= 2; ++msn)
    REQUIRE_FALSE(f.messages.handle(first(msn), one, f.now).drop);
  CHECK(f.messages.handle(first(1), other, f.now).drop == Counter::drop_no_context);
}

TEST_CASE("ud messages: a message without progress for long gives its receive back, and is over") {
  Fixture f;
  CHECK(f.messages.next_expiry() == Time::max());
  f.post_many(2);
  REQUIRE_FALSE(f.take(first(1)).drop);
  f.now += 60ms;
  REQUIRE_FALSE(f.take(send(1, 2, "cd", false)).drop);
  CHECK(f.messages.next_expiry() == kNow + 60ms + kTimeout);
  f.messages.expire(kNow + 60ms + kTimeout - 1ns);
  CHECK(f.peer.open_count == 1);
  f.messages.expire(kNow + 60ms + kTimeout);
  CHECK(f.peer.open_count == 0);
  CHECK(f.receives.next() == 1);
  CHECK(f.receives.reported().empty());
  CHECK(f.counters.get(Counter::message_timeouts) == 1);
  CHECK(f.take(send(1, 4, "e", true)).drop == Counter::drop_late);
}

TEST_CASE("ud messages: a duplicate or an empty segment is no progress") {
  Fixture f;
  f.post_many(2);
  REQUIRE_FALSE(f.take(first(1)).drop);
  f.now += 60ms;
  CHECK(f.take(first(1)).drop == Counter::drop_duplicate);
  CHECK_FALSE(f.take(send(1, 9, "", true)).drop);
  CHECK(f.messages.next_expiry() == kNow + kTimeout);
}

TEST_CASE("ud messages: a timeout that never comes does not wrap") {
  DatagramOptions forever = options();
  forever.message_timeout = Duration::max();
  Fixture f(forever);
  f.post_many(2);
  REQUIRE_FALSE(f.take(first(1)).drop);
  CHECK(f.messages.next_expiry() == Time::max());
  f.messages.expire(kNow + 1000h);
  CHECK(f.peer.open_count == 1);
}

TEST_CASE("ud messages: a Send with Invalidate closes its STag when it is delivered, not sooner") {
  Fixture f;
  const STag stag = f.add(100, 10, kAllRights | Access::remote_invalidate);
  f.post_many(2);
  const auto segment = [&](uint32_t offset, std::string_view text, bool last) {
    Segment made = send(1, offset, text, last);
    made.opcode = rdmap::Opcode::send_invalidate;
    made.invalidate_stag = stag;
    return made;
  };
  REQUIRE_FALSE(f.take(segment(2, "cd", true)).drop);
  CHECK(f.protection.find(stag)->valid);
  REQUIRE_FALSE(f.take(segment(0, "ab", false)).drop);
  CHECK_FALSE(f.protection.find(stag)->valid);
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].invalidated);
  CHECK(done[0].invalidated_stag == stag);
}

TEST_CASE(
    "ud messages: a Send whose STag may not be invalidated is delivered all the same, and "
    "counted") {
  Fixture f;
  f.post_many(4);
  Segment segment = whole(1, "abc");
  segment.opcode = rdmap::Opcode::send_invalidate;
  segment.invalidate_stag = f.region;  // without the right
  for (uint32_t msn = 1; msn <= 2; ++msn) {
    segment.msn = msn;
    CHECK_FALSE(f.take(segment).drop);
  }
  CHECK(f.protection.find(f.region)->valid);
  const auto done = f.receives.reported();
  REQUIRE(done.size() == 2);
  CHECK_FALSE(done[0].invalidated);
  CHECK(done[0].status == WcStatus::success);
  CHECK(f.counters.get(Counter::drop_stag) == 2);
  // It named memory in vain as often as it may within a second.
  segment.msn = 3;
  CHECK(f.take(segment).drop == Counter::drop_stag_limit);
  CHECK_FALSE(f.take(whole(3, "abc")).drop);
  f.now += 1s;
  segment.msn = 4;
  CHECK_FALSE(f.take(segment).drop);
}

TEST_CASE("ud messages: a record on memory that a Send invalidates is reported as it is") {
  Fixture f;
  const STag stag = f.add(100, 10, kAllRights | Access::remote_invalidate);
  f.post_many(1);
  Segment record;
  record.opcode = rdmap::Opcode::write_record;
  record.stag = stag;
  record.message_length = 10;
  record.payload = bytes_of("abc");
  REQUIRE_FALSE(f.records.handle(record, f.peer, f.now).drop);
  Segment segment = whole(1, "");
  segment.opcode = rdmap::Opcode::send_invalidate;
  segment.invalidate_stag = stag;
  REQUIRE_FALSE(f.take(segment).drop);
  CHECK(f.records.open_count() == 0);
}

TEST_CASE("ud messages: a reset gives every receive back, to be taken again") {
  Fixture f;
  f.post_many(4);
  REQUIRE_FALSE(f.take(first(1)).drop);
  REQUIRE_FALSE(f.messages.handle(first(1), f.source("10.0.0.2"), f.now).drop);
  CHECK(f.receives.buffers.available() == 2);
  f.messages.reset();
  CHECK(f.receives.buffers.available() == 4);
  CHECK(f.peer.open_count == 0);
  CHECK(f.receives.buffers.shares().may_hold(0));
  CHECK(f.messages.next_expiry() == Time::max());
}

TEST_CASE(
    "ud messages: a message of one segment that found memory gone is over, as longer ones are") {
  Fixture f;
  f.post(1, 10, 10);
  const STag gone = f.region;
  f.region = f.add(0, Canvas::kSize);
  f.post(2, 30, 10);
  REQUIRE(f.stags.erase(gone));
  CHECK_FALSE(f.take(whole(5, "abc")).fault);
  CHECK(f.receives.reported().at(0).status == WcStatus::local_protection_error);
  // The network has brought the same datagram twice.
  CHECK(f.take(whole(5, "abc")).drop == Counter::drop_late);
  CHECK(f.receives.next() == 2);
}
