// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_responder.h"

#include <vector>
#include "support/catch.h"

#include "rd_parts.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

namespace fault = rdmap::fault;
using dgram::MessageKind;

constexpr uint64_t kBase = 1000;

struct Fixture : Memory {
  Verdict read(uint32_t sink, uint32_t length = 10) {
    return responder.take_request(
        peer, {.sink_stag = sink, .length = length, .source_stag = region, .source_offset = kBase});
  }
  Verdict read_from(STag stag, uint64_t offset) {
    return responder.take_request(peer,
                                  {.length = 2, .source_stag = stag, .source_offset = offset});
  }
  /// The responses that are sent now, so much of each at most.
  Cut send(size_t segment = 100) {
    const Cut sent = cut(peer, sends.queue, segment);
    responder.cut_up_to(sent.part.tag);
    return sent;
  }
  size_t waiting() {
    size_t count = 0;
    for ([[maybe_unused]] const InboundRead& read : peer.work.inbound_reads) ++count;
    return count;
  }

  Counters counters;
  Receives receives;
  Sends sends;
  STag region = add(0, Canvas::kSize, Access::remote_read, kBase);
  Peers peers{receives.buffers.shares()};
  RdPeer& peer = peers.add("10.0.0.1");
  RdResponder responder{protection, counters};
};

}  // namespace

TEST_CASE(
    "rd responder: of several faults of a Read the first in the order of the checks is told") {
  Fixture f;
  const STag foreign = f.add(0, 10, Access::none, kBase, kDomain + 1);
  const STag closed = f.add(0, 10, Access::remote_write | Access::local_write, kBase);
  const auto found = [&](STag stag, uint64_t offset) {
    const Verdict verdict = f.read_from(stag, offset);
    REQUIRE(verdict.drop);
    REQUIRE(verdict.fault);
    return std::pair(*verdict.drop, *verdict.fault);
  };
  CHECK(found(f.region ^ 1, UINT64_MAX) == std::pair(Counter::drop_stag, TerminateCode{0, 1, 0}));
  CHECK(found(foreign, UINT64_MAX) == std::pair(Counter::drop_stag, TerminateCode{0, 1, 3}));
  CHECK(found(closed, UINT64_MAX) == std::pair(Counter::drop_access, TerminateCode{0, 1, 2}));
  CHECK(found(f.region, UINT64_MAX) == std::pair(Counter::drop_bounds, TerminateCode{0, 1, 4}));
  CHECK(found(f.region, kBase - 1) == std::pair(Counter::drop_bounds, TerminateCode{0, 1, 1}));
  CHECK(f.waiting() == 0);
}

TEST_CASE(
    "rd responder: the memory that a Read of no bytes names is not looked at, and it is answered") {
  Fixture f;
  CHECK_FALSE(
      f.responder
          .take_request(f.peer,
                        {.sink_stag = 5, .source_stag = 0xDEADBEEF, .source_offset = UINT64_MAX})
          .drop);
  const Cut sent = f.send();
  CHECK(sent.part.tag.message == dgram::MessageName{MessageKind::read_response, 5});
  CHECK(sent.part.tag.length == 0);
  f.responder.acknowledged(f.peer, sent.part.tag);
  CHECK(f.waiting() == 0);
}

TEST_CASE("rd responder: a peer has no more Reads here than an association allows") {
  Fixture f;
  for (uint32_t i = 0; i < dgram::kMaxReadRequests; ++i) REQUIRE_FALSE(f.read(i).drop);
  const Verdict verdict = f.read(99);
  CHECK(verdict.drop == Counter::drop_share);
  CHECK(verdict.fault == fault::kStreamCatastrophic);
  // A fault of the memory is told first.
  CHECK(f.read_from(f.region ^ 1, kBase).fault == fault::kInvalidStag);
  RdPeer& other = f.peers.add("10.0.0.2");
  CHECK_FALSE(f.responder.take_request(other, {.length = 0}).drop);
  f.responder.acknowledged(f.peer, f.send().part.tag);
  CHECK_FALSE(f.read(99).drop);
}

TEST_CASE(
    "rd responder: Reads that failed keep no place of a new one, but their number is limited") {
  Fixture f;
  uint32_t sink = 0;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < dgram::kMaxReadRequests; ++i) REQUIRE_FALSE(f.read(sink++).drop);
    std::vector<uint32_t> all;
    for (const InboundRead& read : f.peer.work.inbound_reads)
      if (!read.failed) all.push_back(read.index);
    for (const uint32_t index : all) f.responder.fail(f.peer, index, fault::kInvalidStag);
  }
  CHECK(f.waiting() == 2 * dgram::kMaxReadRequests);
  CHECK(f.read(sink).drop == Counter::drop_share);
  const Cut failure = f.send();
  CHECK(failure.part.tag.failure);
  f.responder.acknowledged(f.peer, failure.part.tag);
  CHECK_FALSE(f.read(sink).drop);
}

TEST_CASE("rd responder: a Read is over when the end of its response is acknowledged") {
  Fixture f;
  REQUIRE_FALSE(f.read(5, 10).drop);
  const Cut first = f.send(6);
  const Cut last = f.send(6);
  CHECK(last.part.tag.offset == 6);
  CHECK(last.part.tag.length == 4);
  f.responder.acknowledged(f.peer, first.part.tag);
  CHECK(f.waiting() == 1);
  CHECK(f.counters.get(Counter::reads_served) == 0);
  f.responder.acknowledged(f.peer, last.part.tag);
  CHECK(f.waiting() == 0);
  CHECK(f.counters.get(Counter::reads_served) == 1);
}

TEST_CASE(
    "rd responder: whether memory may be read is asked anew, and a failure is all that is left") {
  Fixture f;
  REQUIRE_FALSE(f.read(5, 10).drop);
  const Cut first = f.send(6);
  const InboundRead& read = f.responder.read(first.part.tag.object);
  REQUIRE(f.stags.erase(f.region));
  const Verdict verdict = f.responder.check(read.request);
  CHECK(verdict.fault == fault::kInvalidStag);
  f.responder.fail(f.peer, read.index, *verdict.fault);
  CHECK(f.peer.sender().scoreboard().is_skip(first.sequence));
  const Cut failure = f.send(6);
  CHECK(failure.part.tag.failure);
  CHECK(failure.part.tag.length == 0);
  CHECK(failure.part.tag.message == dgram::MessageName{MessageKind::read_response, 5});
  CHECK(read.code == fault::kInvalidStag);
  f.responder.acknowledged(f.peer, failure.part.tag);
  CHECK(f.waiting() == 0);
  CHECK(f.counters.get(Counter::reads_served) == 0);
}

TEST_CASE("rd responder: a response that was sent to its end fails in its turn after the others") {
  Fixture f;
  REQUIRE_FALSE(f.read(5, 10).drop);
  const Cut whole = f.send();
  REQUIRE_FALSE(f.read(6, 10).drop);
  REQUIRE_FALSE(f.read(7, 10).drop);
  f.responder.refused(f.peer, whole.part.tag, fault::kUnspecified);
  CHECK(f.send().part.tag.message.number == 6);
  CHECK(f.send().part.tag.message.number == 7);
  const Cut failure = f.send();
  CHECK(failure.part.tag.message.number == 5);
  CHECK(failure.part.tag.failure);
  f.responder.refused(f.peer, failure.part.tag, fault::kUnspecified);  // nothing more can be said
  CHECK_FALSE(f.peer.work.cursor.has_work());
}

TEST_CASE("rd responder: with the association all of the peer's Reads go, and none of another's") {
  Fixture f;
  RdPeer& other = f.peers.add("10.0.0.2");
  REQUIRE_FALSE(f.read(5).drop);
  REQUIRE_FALSE(f.read(6).drop);
  REQUIRE_FALSE(f.responder.take_request(other, {.sink_stag = 7}).drop);
  f.send(6);
  f.responder.drop(f.peer);
  CHECK(f.waiting() == 0);
  CHECK_FALSE(f.peer.work.cursor.has_work());
  CHECK(cut(other, f.sends.queue).part.tag.message.number == 7);
  f.responder.trim();
  CHECK_FALSE(f.read(8).drop);
}
