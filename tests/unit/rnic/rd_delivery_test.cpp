// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_delivery.h"

#include <chrono>
#include <string>
#include <vector>
#include "support/catch.h"

#include "rd_receiving.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

namespace fault = rdmap::fault;
using dgram::MessageKind;
using dgram::RdKind;
using Outcome = RdDelivery::Outcome;
using Segment = rdmap::DatagramSegment;

struct Fixture : Receiving {
  using Receiving::Receiving;

  Outcome take(const Segment& segment) { return take(peer, segment); }
  Outcome take(RdPeer& from, const Segment& segment) {
    return delivery.deliver(from, RdKind::data, rdmap::flags_of(segment), body_of(segment), now);
  }
  /// The code that a segment is refused with.
  TerminateCode refused(const Segment& segment) {
    CHECK(take(segment) == Outcome::refused);
    return peer.inbound.refusal();
  }
  void skip(MessageKind kind, uint32_t number) {
    std::array<std::byte, dgram::kRdSkipBytes> bytes;
    dgram::encode_rd_skip({kind, number}, bytes);
    CHECK(delivery.deliver(peer, RdKind::skip, 0, bytes, now) == Outcome::delivered);
  }
  Segment request(uint32_t msn, STag stag, uint32_t length = 10) {
    return rdmap::request_segment(msn, {.sink_stag = msn, .length = length, .source_stag = stag});
  }
};

}  // namespace

// --- Sends.

TEST_CASE("rd delivery: a Send of several segments is placed in order, and delivered at its end") {
  Fixture f;
  f.post(7, 10, 20);
  CHECK(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  CHECK(f.peer.inbound.has_message());
  CHECK(f.take(send(5, 3, "", false)) == Outcome::delivered);
  CHECK(f.take(send(5, 3, "def", true)) == Outcome::delivered);
  CHECK(f.canvas.has_only(10, "abcdef"));
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 7);
  CHECK(done[0].byte_count == 6);
  CHECK(done[0].source == f.peer.address());
  CHECK_FALSE(f.peer.inbound.has_message());
  CHECK(f.peer.host.holds_none());
}

TEST_CASE(
    "rd delivery: a Send waits for a receive, and one of several segments for a share of them") {
  Fixture f;
  CHECK(f.take(whole(5, "abc")) == Outcome::no_receive);
  CHECK(f.take(send(5, 0, "abc", false)) == Outcome::no_receive);
  RdPeer& other = f.peers.add("10.0.0.2");
  for (uint64_t id = 1; id <= 3; ++id) f.post(id, id * 10, 10);
  REQUIRE(f.take(other, send(5, 0, "abc", false)) == Outcome::delivered);
  CHECK(f.take(send(5, 0, "abc", false)) == Outcome::no_share);  // half of three
  CHECK(f.receives.buffers.available() == 2);
  CHECK(f.take(whole(5, "abc")) == Outcome::delivered);
  REQUIRE(f.take(other, send(5, 3, "", true)) == Outcome::delivered);
  CHECK(f.take(send(6, 0, "abc", false)) == Outcome::delivered);
}

TEST_CASE("rd delivery: a Send with another Q_Key is refused, and takes no receive") {
  Fixture f;
  f.post(1, 0, 10);
  Segment segment = whole(5, "abc");
  ++segment.q_key;
  CHECK(f.refused(segment) == fault::kUnspecified);
  CHECK(f.counters.get(Counter::drop_q_key) == 1);
  CHECK(f.receives.next() == 1);
  CHECK(f.canvas.untouched());
}

TEST_CASE(
    "rd delivery: a Send that does not fit is refused, its receive is the next, its rest ignored") {
  Fixture f;
  f.post(1, 10, 5);
  f.post(2, 30, 10);
  REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  CHECK(f.refused(send(5, 3, "def", false)) == TerminateCode{1, 2, 5});
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.receives.next() == 1);
  CHECK(f.peer.host.holds_none());
  CHECK(f.take(send(5, 6, "g", true)) == Outcome::delivered);
  CHECK(f.receives.next() == 1);
  CHECK(f.errors.poll()->code == fault::kMessageTooLong);
  CHECK_FALSE(f.control.waiting());  // the refusal tells the peer
  CHECK(f.take(whole(6, "xyz")) == Outcome::delivered);
  CHECK(f.reported().size() == 1);
}

TEST_CASE("rd delivery: of an association's Sends each segment continues the one before it") {
  const auto after_first = [](const Segment& segment) {
    Fixture f;
    f.post(1, 10, 20);
    REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
    const TerminateCode code = f.refused(segment);
    CHECK(f.canvas.has_only(10, "abc"));
    CHECK(f.receives.next() == (segment.msn == 5 ? 1 : 0));
    return code;
  };
  CHECK(after_first(send(5, 4, "def", true)) == fault::kInvalidOffset);   // a gap
  CHECK(after_first(send(5, 2, "cde", true)) == fault::kInvalidOffset);   // an overlap
  CHECK(after_first(send(5, 0, "abc", false)) == fault::kInvalidOffset);  // once more
  CHECK(after_first(send(6, 3, "def", true)) == fault::kInvalidOffset);   // of another
  Segment other = send(5, 3, "def", true);
  other.opcode = rdmap::Opcode::send_solicited;
  CHECK(after_first(other) == fault::kInvalidOffset);
  other = send(5, 3, "def", true);
  ++other.q_key;
  CHECK(after_first(other) == fault::kInvalidOffset);
  Fixture f;
  f.post(1, 10, 20);
  CHECK(f.refused(send(5, 3, "def", true)) == fault::kInvalidOffset);  // of none
}

TEST_CASE("rd delivery: memory that goes between two segments fails the receive, not the peer") {
  Fixture f;
  f.post(1, 10, 20);
  REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.take(send(5, 3, "def", true)) == Outcome::delivered);
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.reported().at(0).status == WcStatus::local_protection_error);
  CHECK(f.requests.take_fatal());
  CHECK(f.peer.host.holds_none());
}

TEST_CASE("rd delivery: a Send that is skipped gives its receive back, and its rest is ignored") {
  Fixture f;
  f.post(1, 10, 20);
  REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  f.skip(MessageKind::write_record, 5);  // another kind of message
  CHECK(f.receives.next() == 0);
  f.skip(MessageKind::send, 5);
  CHECK(f.receives.next() == 1);
  CHECK(f.take(send(5, 3, "def", true)) == Outcome::delivered);
  CHECK(f.reported().empty());
  CHECK(f.take(whole(6, "xyz")) == Outcome::delivered);
  CHECK(f.canvas.has_only(10, "xyz"));
}

TEST_CASE("rd delivery: a Send that is given up for want of progress is refused when more comes") {
  Fixture f;
  f.post(1, 10, 20);
  REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  f.delivery.expire(f.peer);
  CHECK(f.receives.next() == 1);
  CHECK(f.counters.get(Counter::message_timeouts) == 1);
  CHECK(f.refused(send(5, 3, "def", true)) == fault::kStreamCatastrophic);
  CHECK(f.canvas.has_only(10, "abc"));
}

TEST_CASE(
    "rd delivery: a Send that was delivered is not delivered once more in a new association") {
  Fixture f;
  for (uint64_t id = 1; id <= 3; ++id) f.post(id, id * 10, 10);
  REQUIRE(f.take(whole(0, "abc")) == Outcome::delivered);
  f.delivery.interrupt(f.peer);
  f.peer.inbound.association_ended();
  // The one before it was sent before the MSN wrapped.
  CHECK(f.take(send(UINT32_MAX, 0, "x", false)) == Outcome::delivered);
  CHECK(f.take(send(UINT32_MAX, 1, "y", true)) == Outcome::delivered);
  CHECK(f.take(whole(0, "abc")) == Outcome::delivered);
  CHECK(f.counters.get(Counter::drop_late) == 2);
  CHECK(f.take(whole(1, "new")) == Outcome::delivered);
  CHECK(f.reported().size() == 2);
  CHECK(*f.canvas.at(20) == std::byte{'n'});
}

TEST_CASE("rd delivery: a Send that the end of an association cut may begin once more") {
  Fixture f;
  f.post(1, 10, 20);
  REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  f.delivery.interrupt(f.peer);
  f.peer.inbound.association_ended();
  CHECK(f.receives.next() == 1);
  CHECK(f.take(send(5, 0, "ABCD", false)) == Outcome::delivered);
  CHECK(f.take(send(5, 4, "EF", true)) == Outcome::delivered);
  CHECK(f.canvas.has_only(10, "ABCDEF"));
  CHECK(f.reported().size() == 1);
}

TEST_CASE("rd delivery: a Send with Invalidate closes its STag at its end, or is counted") {
  Fixture f;
  const STag open = f.add(0, 10, kAllRights | Access::remote_invalidate);
  for (uint64_t id = 1; id <= 3; ++id) f.post(id, id * 10, 10);
  Segment segment = send(5, 0, "ab", false);
  segment.opcode = rdmap::Opcode::send_invalidate;
  segment.q_key = 0;
  segment.invalidate_stag = open;
  provider::QueuePairInit without_key = rd_init();
  without_key.datagram.q_key = 0;
  RdDelivery delivery(f.receives.buffers, f.protection, f.peers.table, f.records, f.requests,
                      f.responder, f.errors, f.logged, without_key.datagram);
  const auto take = [&](const Segment& one) {
    std::vector<std::byte> bytes(DatagramBurst::kHeaderBytes);
    bytes.resize(rdmap::encode_segment_headers(one, bytes));
    bytes.insert(bytes.end(), one.payload.begin(), one.payload.end());
    return delivery.deliver(f.peer, RdKind::data, 0, bytes, f.now);
  };
  REQUIRE(take(segment) == Outcome::delivered);
  CHECK(f.protection.find(open)->valid);
  segment.message_offset = 2;
  segment.last = true;
  REQUIRE(take(segment) == Outcome::delivered);
  CHECK_FALSE(f.protection.find(open)->valid);
  segment.message_offset = 0;
  segment.msn = 6;
  segment.invalidate_stag = f.region;  // without the right
  CHECK(take(segment) == Outcome::delivered);
  const auto done = f.reported();
  REQUIRE(done.size() == 2);
  CHECK(done[0].invalidated_stag == open);
  CHECK_FALSE(done[1].invalidated);
  CHECK(f.counters.get(Counter::drop_stag) == 1);
}

// --- Write-Records.

TEST_CASE(
    "rd delivery: a Write-Record that names memory in vain is refused, and its rest ignored") {
  Fixture f;
  Segment segment = f.record(1, 6, 0, "abc");
  segment.stag ^= 1;
  CHECK(f.refused(segment) == TerminateCode{1, 1, 0});
  CHECK(f.errors.poll()->stag == segment.stag);
  Segment rest = f.record(1, 6, 3, "def");  // which would be right
  CHECK(f.take(rest) == Outcome::delivered);
  CHECK(f.canvas.untouched());
  CHECK(f.take(f.record(2, 6, 0, "abcdef")) == Outcome::delivered);
  CHECK(f.reported().size() == 1);
}

TEST_CASE("rd delivery: a Write-Record is told of when it is whole, and repeats are no news") {
  Fixture f;
  REQUIRE(f.take(f.record(1, 6, 0, "abc")) == Outcome::delivered);
  CHECK(f.reported().empty());
  REQUIRE(f.take(f.record(1, 6, 3, "def")) == Outcome::delivered);
  CHECK(f.canvas.has_only(100, "abcdef"));
  CHECK(f.reported().size() == 1);
  f.delivery.interrupt(f.peer);
  f.peer.inbound.association_ended();
  CHECK(f.take(f.record(1, 6, 0, "xyz")) == Outcome::delivered);
  CHECK(f.take(f.record(1, 6, 3, "xyz")) == Outcome::delivered);
  CHECK(f.canvas.has_only(100, "abcdef"));
  CHECK(f.reported().empty());
}

TEST_CASE("rd delivery: a Write-Record whose memory was closed under it is refused in its middle") {
  Fixture f;
  REQUIRE(f.take(f.record(1, 6, 0, "abc")) == Outcome::delivered);
  f.records.close_on(f.region);
  CHECK(f.refused(f.record(1, 6, 3, "def")) == fault::kTaggedInvalidStag);
  CHECK(f.canvas.has_only(100, "abc"));
  CHECK(f.reported().at(0).valid_bytes == 3);
}

TEST_CASE("rd delivery: over RD an overlap, which UD drops in silence, is refused") {
  Fixture f;
  REQUIRE(f.take(f.record(1, 9, 0, "abc")) == Outcome::delivered);
  CHECK(f.refused(f.record(1, 9, 2, "xyz")) == fault::kUnspecified);
  CHECK(f.counters.get(Counter::drop_contradiction) == 1);
  CHECK(f.records.open_count() == 0);  // it will not be finished
  CHECK(f.canvas.has_only(100, "abc"));
}

TEST_CASE("rd delivery: a Write-Record that is skipped is reported as it is") {
  Fixture f;
  REQUIRE(f.take(f.record(1, 6, 0, "abc")) == Outcome::delivered);
  f.skip(MessageKind::send, 1);
  CHECK(f.records.open_count() == 1);
  f.skip(MessageKind::write_record, 1);
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].valid_bytes == 3);
  CHECK(f.take(f.record(1, 6, 3, "def")) == Outcome::delivered);
  CHECK(f.canvas.has_only(100, "abc"));
}

TEST_CASE("rd delivery: a Write-Record waits for room to be reported, and nothing of it is done") {
  Fixture f(rd_init(), 1);
  for (uint32_t msn = 1; msn <= 3; ++msn)
    REQUIRE(f.take(f.record(msn, 1, 0, "a")) == Outcome::delivered);
  CHECK(f.take(f.record(4, 1, 0, "b")) == Outcome::no_room);
  CHECK(f.canvas.has_only(100, "a"));
  CHECK(f.receives.poll().size() == 1);
  CHECK(f.take(f.record(4, 1, 0, "b")) == Outcome::delivered);
}

TEST_CASE("rd delivery: of segments that are reported one by one each byte is reported once") {
  Fixture f(rd_init(RecordCompletion::per_segment));
  REQUIRE(f.take(f.record(1, 6, 0, "abc")) == Outcome::delivered);
  CHECK(f.reported().at(0).byte_count == 3);
  f.delivery.interrupt(f.peer);
  f.peer.inbound.association_ended();
  CHECK(f.take(f.record(1, 6, 0, "xy")) == Outcome::delivered);
  CHECK(f.reported().empty());
  CHECK(f.take(f.record(1, 6, 2, "zdef")) == Outcome::delivered);  // cut otherwise
  const auto done = f.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].tagged_offset == 103);
  CHECK(done[0].byte_count == 3);
  CHECK(f.canvas.has_only(100, "abcdef"));
}

// --- Reads.

TEST_CASE("rd delivery: a Read Request waits to be answered, one for wrong memory is refused") {
  Fixture f;
  CHECK(f.take(f.request(1, f.region)) == Outcome::delivered);
  CHECK(f.peer.work.cursor.has_work());
  CHECK(f.refused(f.request(2, f.region ^ 1)) == TerminateCode{0, 1, 0});
  CHECK(f.errors.poll()->opcode == static_cast<uint8_t>(rdmap::Opcode::read_request));
}

TEST_CASE("rd delivery: a Read Response without a request is dropped, and has had its turn") {
  Fixture f;
  Segment segment;
  segment.opcode = rdmap::Opcode::read_response;
  segment.stag = f.region;  // which a response never names
  segment.payload = bytes_of("abc");
  CHECK(f.take(segment) == Outcome::delivered);
  CHECK(f.counters.get(Counter::drop_response) == 1);
  CHECK(f.canvas.untouched());
}

TEST_CASE("rd delivery: a failure ends the Read whose sink it names") {
  Fixture f;
  REQUIRE_FALSE(f.sends.queue.post({.sges = f.sge(f.region, 0, 10),
                                    .destination = f.peer.address(),
                                    .opcode = WrOpcode::rdma_read}));
  f.requests.add(f.peer, f.sends.queue.hand_over());
  REQUIRE(f.requests.reserve_reads(1));
  const Cut sent = cut(f.peer, f.sends.queue);
  f.requests.add_read(f.peer, sent.part.tag, 0x77, sent.sequence);
  std::array<std::byte, dgram::kRdFailureBytes> bytes;
  dgram::encode_rd_failure({.sink_stag = 0x77, .code = rdmap::to_word(fault::kBaseOrBounds)},
                           bytes);
  CHECK(f.delivery.deliver(f.peer, RdKind::failure, 0, bytes, f.now) == Outcome::delivered);
  CHECK(f.sends.statuses() == Statuses{WcStatus::remote_access_error});
}

// --- Limits, and what is malformed.

TEST_CASE("rd delivery: a peer that named memory in vain too often waits for the second to end") {
  Fixture f;
  for (uint32_t msn = 1; msn <= 2; ++msn) f.refused(f.request(msn, f.region ^ 1));
  CHECK(f.take(f.request(3, f.region)) == Outcome::stag_limit);
  CHECK(f.take(f.record(3, 1, 0, "a")) == Outcome::stag_limit);
  CHECK(f.canvas.untouched());
  CHECK(f.delivery.stag_limit().has_guessed_too_often(f.peer, f.now));
  CHECK(f.take(f.request(3, 0, 0)) == Outcome::delivered);  // which names none
  f.post(1, 10, 10);
  CHECK(f.take(whole(3, "abc")) == Outcome::delivered);
  RdPeer& other = f.peers.add("10.0.0.2");
  CHECK(f.take(other, f.request(3, f.region)) == Outcome::delivered);
  f.now = f.delivery.stag_limit().may_name_memory_at(f.peer, f.now);
  CHECK(f.now <= kNow + 1001ms);
  CHECK(f.take(f.request(4, f.region)) == Outcome::delivered);
}

TEST_CASE("rd delivery: a segment that cannot be parsed is refused, and ends no message") {
  Fixture f;
  f.post(1, 10, 20);
  REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  const std::array<std::byte, 3> bytes{};
  CHECK(f.delivery.deliver(f.peer, RdKind::data, 0, bytes, f.now) == Outcome::refused);
  CHECK(f.peer.inbound.refusal() == fault::kUnspecified);
  CHECK(f.counters.get(Counter::drop_truncated) == 1);
  CHECK(f.take(send(5, 3, "def", true)) == Outcome::delivered);
  CHECK(f.reported().size() == 1);
}

TEST_CASE("rd delivery: messages of a peer that goes are ended, its records reported as they are") {
  Fixture f;
  f.post(1, 10, 20);
  REQUIRE(f.take(f.record(1, 6, 0, "abc")) == Outcome::delivered);
  REQUIRE(f.take(send(5, 0, "abc", false)) == Outcome::delivered);
  CHECK(f.records.open_count() == 0);  // no other message begins while one is open
  f.delivery.abandon(f.peer);
  CHECK(f.receives.next() == 1);
  CHECK(f.peer.host.holds_none());
  REQUIRE(f.take(f.record(2, 6, 0, "abc")) == Outcome::delivered);
  f.delivery.abandon(f.peer);
  CHECK(f.records.open_count() == 0);
  CHECK(f.reported().size() == 2);
}
