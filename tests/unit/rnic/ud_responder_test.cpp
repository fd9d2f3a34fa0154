// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_responder.h"

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>
#include "support/catch.h"

#include "dgram/address_validation.h"
#include "parts.h"
#include "rdmap/terminate.h"
#include "rnic/datagram/control_sender.h"
#include "rnic/datagram/error_reports.h"
#include "rnic/datagram/ud/source_table.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

namespace fault = rdmap::fault;
using rdmap::ReadRequest;

constexpr uint64_t kBase = 1000;
/// Prefix, DDP header, body and CRC of a Read Request: 8 + 18 + 28 + 4.
constexpr size_t kRequestBytes = 58;
/// A response without its payload: 8 + 14 + 4. So much may be answered without knowing the source.
constexpr uint32_t kHarmless = kRequestBytes - 26;

struct Fixture : Memory {
  explicit Fixture(const ReadOptions& chosen = {})
      : responder(protection, validation, control, errors, logged, chosen, waker) {}

  Source& source(const char* host) {
    Counter reason{};
    return *sources.find_or_add({Address::parse(host, 7), 1}, kNow, reason);
  }
  Source& validated(const char* host) {
    Source& made = source(host);
    made.validated_until = kNow + 60s;
    return made;
  }
  Verdict take(Source& from, const ReadRequest& request, size_t bytes = kRequestBytes) {
    rdmap::DatagramSegment segment = rdmap::request_segment(3, request);
    segment.nonce = 0x4E;
    return responder.handle(segment, from, bytes, kNow);
  }
  Verdict read(Source& from, uint64_t offset, uint32_t length) {
    return take(from, {.sink_stag = 0x51,
                       .sink_offset = 900,
                       .length = length,
                       .source_stag = region,
                       .source_offset = kBase + offset});
  }
  std::vector<Sent> send() { return outlet.send(responder, kNow); }

  Counters counters;
  LoggedCounters logged{counters};
  dgram::AddressValidation validation{SipKey{1, 2}};
  CountingWaker control_waker;
  ControlSender control{control_waker};
  ErrorReports errors{control, logged, 8, 1000};
  CountingWaker waker;
  STag region = add(0, Canvas::kSize, Access::remote_read, kBase);
  SourceTable sources{SourceLimits{}, SipKey{1, 2}};
  UdResponder responder;
  Outlet outlet;
  Source& peer = validated("10.0.0.1");
};

/// The fault that a request of a source which is validated is refused with.
std::pair<Counter, TerminateCode> refused(Fixture& f, STag stag, uint64_t offset) {
  const Verdict verdict =
      f.take(f.peer, {.length = 2, .source_stag = stag, .source_offset = offset});
  REQUIRE(verdict.drop);
  REQUIRE(verdict.fault);
  CHECK_FALSE(f.responder.waiting());
  return {*verdict.drop, *verdict.fault};
}

}  // namespace

TEST_CASE("ud responder: a response is cut into datagrams, and names the requester's sink") {
  Fixture f;
  std::copy_n(bytes_of("0123456789").begin(), 10, f.canvas.at(20));
  CHECK_FALSE(f.read(f.peer, 20, 10).drop);
  CHECK(f.waker.woken == 1);
  f.outlet.set_datagram(26 + 4);
  const auto sent = f.send();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].text() == "0123");
  CHECK(sent[1].text() == "4567");
  CHECK(sent[2].text() == "89");
  for (size_t i = 0; i < 3; ++i) {
    CHECK(sent[i].to == f.peer.key.address);
    const auto segment = sent[i].segment();
    CHECK(segment.opcode == rdmap::Opcode::read_response);
    CHECK(segment.stag == 0x51);
    CHECK(segment.tagged_offset == 900 + 4 * i);
    CHECK(segment.last == (i == 2));
  }
  CHECK_FALSE(f.responder.waiting());
  CHECK(f.peer.responses == 0);
  CHECK(f.counters.get(Counter::reads_served) == 1);
}

TEST_CASE(
    "ud responder: a response to the last byte of a region is served, and one beyond it not") {
  Fixture f;
  CHECK_FALSE(f.read(f.peer, Canvas::kSize - 4, 4).drop);
  CHECK(f.send().size() == 1);
  CHECK(f.read(f.peer, Canvas::kSize - 4, 5).fault == fault::kBaseOrBounds);
}

TEST_CASE("ud responder: of several faults the first in the order of the checks is told") {
  Fixture f;
  const STag foreign = f.add(0, 10, Access::none, kBase, kDomain + 1);
  const STag closed = f.add(0, 10, Access::remote_write | Access::local_write, kBase);
  CHECK(refused(f, f.region ^ 1, UINT64_MAX) ==
        std::pair(Counter::drop_stag, TerminateCode{0, 1, 0}));
  CHECK(refused(f, foreign, UINT64_MAX) == std::pair(Counter::drop_stag, TerminateCode{0, 1, 3}));
  CHECK(refused(f, closed, UINT64_MAX) == std::pair(Counter::drop_access, TerminateCode{0, 1, 2}));
  CHECK(refused(f, f.region, UINT64_MAX) ==
        std::pair(Counter::drop_bounds, TerminateCode{0, 1, 4}));
  CHECK(refused(f, f.region, kBase - 1) == std::pair(Counter::drop_bounds, TerminateCode{0, 1, 1}));
}

TEST_CASE("ud responder: the memory that a Read of no bytes names is not looked at") {
  Fixture f;
  Source& stranger = f.source("10.0.0.2");
  const ReadRequest request{.source_stag = 0xDEADBEEF, .source_offset = UINT64_MAX};
  CHECK_FALSE(f.take(stranger, request).drop);
  const auto sent = f.send();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].segment().last);
  CHECK(sent[0].text().empty());
}

TEST_CASE("ud responder: a stranger is challenged before anything is said of the memory it names") {
  Fixture f;
  Source& stranger = f.source("10.0.0.2");
  const ReadRequest request{.sink_offset = 77,
                            .length = kHarmless + 1,
                            .source_stag = f.region ^ 1,  // there is no such STag
                            .source_offset = kBase};
  const Verdict verdict = f.take(stranger, request);
  CHECK_FALSE(verdict.drop);
  CHECK_FALSE(verdict.fault);
  CHECK_FALSE(f.responder.waiting());
  CHECK(f.counters.get(Counter::challenges_sent) == 1);
  const auto sent = f.outlet.send(f.control, kNow);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].to == stranger.key.address);
  const auto control = sent[0].control();
  CHECK(control.type == dgram::ControlType::challenge);
  CHECK(control.challenge.nonce == 77);
  CHECK(f.validation.valid(control.challenge.cookie, stranger.key.address, 1, kNow));
  CHECK_FALSE(f.validation.valid(control.challenge.cookie, stranger.key.address, 2, kNow));
}

TEST_CASE("ud responder: a stranger is answered with no more bytes than it sent") {
  Fixture f;
  Source& stranger = f.source("10.0.0.2");
  CHECK_FALSE(f.read(stranger, 0, kHarmless).drop);
  CHECK(f.responder.waiting());
  const auto sent = f.send();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].bytes.size() == kRequestBytes);
  CHECK(f.counters.get(Counter::challenges_sent) == 0);
}

TEST_CASE("ud responder: a Challenge is no longer than the datagram that it answers") {
  Fixture f;
  Source& stranger = f.source("10.0.0.2");
  const ReadRequest request{.length = 1000, .source_stag = f.region, .source_offset = kBase};
  CHECK(f.take(stranger, request, dgram::kChallengeDatagramBytes - 1).drop ==
        Counter::drop_no_context);
  CHECK(f.counters.get(Counter::challenges_sent) == 0);
  CHECK_FALSE(f.take(stranger, request, dgram::kChallengeDatagramBytes).drop);
  CHECK(f.counters.get(Counter::challenges_sent) == 1);
}

TEST_CASE("ud responder: a region may want its sources validated, however little they read") {
  Fixture f;
  Source& stranger = f.source("10.0.0.2");
  f.region = f.add(0, 100, Access::remote_read | Access::validated_source, kBase);
  CHECK_FALSE(f.read(stranger, 0, 1).drop);
  CHECK(f.counters.get(Counter::challenges_sent) == 1);
  CHECK_FALSE(f.responder.waiting());
  CHECK(f.read(stranger, 100, 1).fault == fault::kBaseOrBounds);  // what is wrong comes first
  CHECK_FALSE(f.read(f.peer, 0, 1).drop);
  CHECK(f.responder.waiting());
}

TEST_CASE("ud responder: requests that wait are limited per source and in all") {
  Fixture f({.max_responses = 3, .max_responses_per_source = 2});
  Source& other = f.validated("10.0.0.2");
  CHECK_FALSE(f.read(f.peer, 0, 1).drop);
  CHECK_FALSE(f.read(f.peer, 0, 1).drop);
  CHECK(f.read(f.peer, 0, 1).drop == Counter::drop_share);
  CHECK_FALSE(f.read(other, 0, 1).drop);
  CHECK(f.read(other, 0, 1).drop == Counter::drop_no_context);
  CHECK(f.send().size() == 3);
  CHECK_FALSE(f.read(f.peer, 0, 1).drop);
}

TEST_CASE("ud responder: unsent datagrams are added anew, from where the link stopped") {
  Fixture f;
  f.outlet.set_datagram(26 + 4);
  REQUIRE_FALSE(f.read(f.peer, 0, 12).drop);
  const auto sent = f.outlet.fill(f.responder, kNow);
  REQUIRE(sent.size() == 3);
  f.responder.sent(sent[0].tag);
  const auto again = f.send();
  REQUIRE(again.size() == 2);
  CHECK(again[0].segment().tagged_offset == 904);
  CHECK_FALSE(f.responder.waiting());
}

TEST_CASE("ud responder: memory that goes between two bursts ends the response with an Error") {
  Fixture f;
  f.outlet.set_datagram(26 + 4);
  REQUIRE_FALSE(f.read(f.peer, 0, 12).drop);
  f.responder.sent(f.outlet.fill(f.responder, kNow)[0].tag);
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.send().empty());
  CHECK_FALSE(f.responder.waiting());
  const auto error = f.errors.poll();
  REQUIRE(error);
  CHECK(error->code == fault::kInvalidStag);
  CHECK(error->msn == 3);
  CHECK(error->stag == f.region);
  CHECK_FALSE(error->reported);
  const auto sent = f.outlet.send(f.control, kNow);
  REQUIRE(sent.size() == 1);
  const auto told = rdmap::parse_error(sent[0].control().rest);
  REQUIRE(told.valid);
  CHECK(told.error.code == fault::kInvalidStag);
  CHECK(rdmap::parse_error_headers(told.error.headers)->nonce == 0x4E);
  CHECK(f.counters.get(Counter::reads_served) == 0);
}

TEST_CASE("ud responder: a stranger learns nothing more of memory than that an STag is unknown") {
  Fixture f;
  Source& stranger = f.source("10.0.0.2");
  const STag window = f.add_window();
  const MemoryBinding binding{.stag = window,
                              .region = f.add(0, 100),
                              .address = f.canvas.at(0),
                              .length = 10,
                              .access = Access::remote_read,
                              .base = kBase};
  REQUIRE(f.protection.bind(binding) == ddp::RegionFault::none);
  f.region = window;
  REQUIRE_FALSE(f.read(stranger, 0, 10).drop);
  MemoryBinding other = binding;
  other.length = 0;
  REQUIRE(f.protection.bind(other) == ddp::RegionFault::none);
  other.length = 5;
  REQUIRE(f.protection.bind(other) == ddp::RegionFault::none);  // it is too short now
  CHECK(f.send().empty());
  CHECK(f.errors.poll()->code == fault::kBaseOrBounds);
  const auto sent = f.outlet.send(f.control, kNow);
  REQUIRE(sent.size() == 1);
  CHECK(rdmap::parse_error(sent[0].control().rest).error.code == fault::kInvalidStag);
}

TEST_CASE("ud responder: the rest is cut anew where the path carries less, but not for ever") {
  Fixture f;
  REQUIRE_FALSE(f.read(f.peer, 0, 12).drop);
  for (int i = 0; i < SizeRefusals::kMost; ++i) {
    const auto sent = f.outlet.fill(f.responder, kNow);
    REQUIRE(sent.size() == 1);
    f.responder.refused(sent[0].tag, EMSGSIZE);
    REQUIRE(f.responder.waiting());
  }
  f.outlet.set_datagram(26 + 6);
  const auto halves = f.outlet.fill(f.responder, kNow);
  REQUIRE(halves.size() == 2);
  f.responder.sent(halves[0].tag);
  for (int i = 0; i <= SizeRefusals::kMost; ++i) {
    CHECK(f.responder.waiting());
    f.responder.refused(f.outlet.fill(f.responder, kNow).at(0).tag, EMSGSIZE);
  }
  CHECK_FALSE(f.responder.waiting());
  CHECK(f.peer.responses == 0);
}

TEST_CASE("ud responder: another refusal ends the response, and those after it go on") {
  Fixture f;
  REQUIRE_FALSE(f.read(f.peer, 0, 4).drop);
  REQUIRE_FALSE(f.read(f.peer, 8, 2).drop);
  f.responder.refused(f.outlet.fill(f.responder, kNow)[0].tag, EPERM);
  const auto sent = f.send();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].text().size() == 2);
}

TEST_CASE("ud responder: sources share a burst, and each is the first in turn") {
  Fixture f;
  f.outlet.set_datagram(26 + 2);
  Source& other = f.validated("10.0.0.2");
  REQUIRE_FALSE(f.read(f.peer, 0, 200).drop);
  REQUIRE_FALSE(f.read(other, 0, 200).drop);
  const auto of_peer = [&](const std::vector<Sent>& burst) {
    return std::ranges::count(burst, f.peer.key.address, &Sent::to);
  };
  const auto first = f.send();
  const auto second = f.send();
  CHECK(first.size() == 64);
  CHECK(of_peer(first) == 32);
  CHECK(of_peer(second) == 32);
  CHECK(first.front().to != second.front().to);
}

TEST_CASE("ud responder: a reset forgets all requests, and frees their places") {
  Fixture f({.max_responses = 2, .max_responses_per_source = 2});
  REQUIRE_FALSE(f.read(f.peer, 0, 1).drop);
  REQUIRE_FALSE(f.read(f.peer, 0, 1).drop);
  f.responder.reset();
  CHECK_FALSE(f.responder.waiting());
  CHECK(f.peer.responses == 0);
  CHECK(f.send().empty());
  CHECK_FALSE(f.read(f.peer, 0, 1).drop);
  CHECK_FALSE(f.read(f.peer, 0, 1).drop);
}
