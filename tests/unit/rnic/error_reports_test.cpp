// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/error_reports.h"

#include <array>
#include <chrono>
#include "support/catch.h"

#include "parts.h"
#include "rdmap/terminate.h"
#include "rnic/datagram/control_sender.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

namespace fault = rdmap::fault;

const Address kPeer = Address::parse("10.0.0.1:7");
constexpr size_t kRoom = 200;  // bytes of the datagram that an Error answers

struct Fixture {
  explicit Fixture(uint32_t entries = 4, uint32_t rate = 1000)
      : errors(control, logged, entries, rate) {
    segment.opcode = rdmap::Opcode::write_record;
    segment.stag = 0xABCD;
    segment.tagged_offset = 500;
    segment.msn = 3;
    segment.message_length = 9;
    segment.headers = ConstBytes(headers).first(rdmap::encode_segment_headers(segment, headers));
  }
  void found(TerminateCode code, size_t bytes = kRoom, bool reply = true, Time now = kNow,
             std::optional<TerminateCode> told = {}) {
    errors.found({kPeer, 5}, segment, code, bytes, reply, now, told);
  }
  /// The Errors that are sent now.
  std::vector<rdmap::ParsedError> sent() {
    datagrams = outlet.send(control, kNow);
    std::vector<rdmap::ParsedError> all;
    for (const Sent& datagram : datagrams)
      all.push_back(rdmap::parse_error(datagram.control().rest));
    return all;
  }

  Counters counters;
  LoggedCounters logged{counters};
  CountingWaker control_waker;
  ControlSender control{control_waker};
  ErrorReports errors;
  std::array<std::byte, DatagramBurst::kHeaderBytes> headers{};
  rdmap::DatagramSegment segment;
  Outlet outlet;
  std::vector<Sent> datagrams;
};

}  // namespace

TEST_CASE("error reports: a fault is told to the application and to the source") {
  Fixture f;
  f.found(fault::kTaggedBaseOrBounds);
  const auto entry = f.errors.poll();
  REQUIRE(entry);
  CHECK(entry->peer == kPeer);
  CHECK_FALSE(entry->reported);
  CHECK(entry->code == fault::kTaggedBaseOrBounds);
  CHECK(entry->opcode == static_cast<uint8_t>(rdmap::Opcode::write_record));
  CHECK(entry->msn == 3);
  CHECK(entry->stag == 0xABCD);
  CHECK(entry->tagged_offset == 500);
  CHECK_FALSE(f.errors.poll());
  const auto sent = f.sent();
  REQUIRE(sent.size() == 1);
  CHECK(f.datagrams[0].to == kPeer);
  CHECK(sent[0].error.code == fault::kTaggedBaseOrBounds);
  CHECK(std::ranges::equal(sent[0].error.headers, f.segment.headers));
  CHECK(f.counters.get(Counter::errors_sent) == 1);
}

TEST_CASE("error reports: of a Read Request the memory that it names is told") {
  Fixture f;
  f.segment =
      rdmap::request_segment(8, {.sink_stag = 1, .source_stag = 0x77, .source_offset = 600});
  f.segment.headers =
      ConstBytes(f.headers).first(rdmap::encode_segment_headers(f.segment, f.headers));
  f.found(fault::kInvalidStag);
  const auto entry = f.errors.poll();
  CHECK(entry->stag == 0x77);
  CHECK(entry->tagged_offset == 600);
}

TEST_CASE("error reports: the source may be told something else than the application") {
  Fixture f;
  f.found(fault::kTaggedBaseOrBounds, kRoom, true, kNow, fault::kTaggedInvalidStag);
  CHECK(f.errors.poll()->code == fault::kTaggedBaseOrBounds);
  CHECK(f.sent().at(0).error.code == fault::kTaggedInvalidStag);
}

TEST_CASE("error reports: where nothing may be answered the application alone is told") {
  Fixture f;
  f.found(fault::kTaggedBaseOrBounds, kRoom, false);
  CHECK(f.errors.poll());
  CHECK(f.sent().empty());
  CHECK(f.counters.get(Counter::errors_sent) == 0);
  CHECK(f.counters.get(Counter::errors_suppressed) == 1);
}

TEST_CASE(
    "error reports: an Error is no longer than what it answers, and says less before it is left "
    "out") {
  // 12 bytes of envelope, 4 of control header, 4 of code; then 2, and the headers: 14 and 12.
  const auto headers_in = [](size_t bytes) {
    Fixture f;
    f.found(fault::kTaggedBaseOrBounds, bytes);
    const auto sent = f.sent();
    CHECK(sent.size() == f.counters.get(Counter::errors_sent));
    if (!sent.empty()) CHECK(f.datagrams[0].bytes.size() <= bytes);
    return sent.empty() ? -1 : static_cast<int>(sent[0].error.headers.size());
  };
  CHECK(headers_in(19) == -1);
  CHECK(headers_in(20) == 0);
  CHECK(headers_in(35) == 0);
  CHECK(headers_in(36) == 14);
  CHECK(headers_in(47) == 14);
  CHECK(headers_in(48) == 26);
}

TEST_CASE("error reports: a newer error finds no place in a full queue, and is counted") {
  Fixture f(2);
  for (uint32_t i = 0; i < 4; ++i) {
    f.segment.msn = i;
    f.found(fault::kTaggedBaseOrBounds, kRoom, false);
  }
  CHECK(f.counters.get(Counter::error_queue_dropped) == 2);
  CHECK(f.errors.poll()->msn == 0);
  CHECK(f.errors.poll()->msn == 1);
  CHECK_FALSE(f.errors.poll());
  f.found(fault::kTaggedBaseOrBounds, kRoom, false);
  f.errors.reset();
  CHECK_FALSE(f.errors.poll());
}

TEST_CASE(
    "error reports: as many Errors are sent as the rate allows, a tenth of a second's at once") {
  Fixture f(64, 20);
  const auto sent_after = [&](Time now, int count) {
    const uint64_t before = f.counters.get(Counter::errors_sent);
    for (int i = 0; i < count; ++i) f.found(fault::kTaggedBaseOrBounds, kRoom, true, now);
    return f.counters.get(Counter::errors_sent) - before;
  };
  CHECK(sent_after(kNow, 5) == 2);
  CHECK(sent_after(kNow + 49ms, 5) == 0);
  CHECK(sent_after(kNow + 51ms, 5) == 1);
  CHECK(sent_after(kNow + 10s, 5) == 2);  // no more is saved up
  Fixture silent(64, 0);
  silent.found(fault::kTaggedBaseOrBounds);
  CHECK(silent.sent().empty());
}

TEST_CASE("error reports: a rate below ten a second still lets one through") {
  Fixture f(64, 1);
  f.found(fault::kTaggedBaseOrBounds);
  f.found(fault::kTaggedBaseOrBounds);
  CHECK(f.counters.get(Counter::errors_sent) == 1);
}

TEST_CASE("error reports: an Error that came is told as the peer's, with what it repeats") {
  Fixture f;
  f.errors.received(
      kPeer,
      {.code = fault::kTaggedInvalidStag, .headers = f.segment.headers, .segment_bytes = 100});
  f.errors.received(kPeer, {.code = fault::kNoBuffer});
  const auto first = f.errors.poll();
  REQUIRE(first);
  CHECK(first->reported);
  CHECK(first->peer == kPeer);
  CHECK(first->stag == 0xABCD);
  CHECK(first->msn == 3);
  const auto second = f.errors.poll();
  REQUIRE(second);
  CHECK(second->reported);
  CHECK(second->code == fault::kNoBuffer);
  CHECK(second->stag == 0);
  CHECK(f.sent().empty());  // nobody answers an Error
}
