// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_reader.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <set>
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
using Begun = UdReader::Begun;
using Segment = rdmap::DatagramSegment;

const Address kTarget = Address::parse("10.0.0.1:7");
const Address kOther = Address::parse("10.0.0.1:8");
constexpr Duration kTimeout = 100ms;

struct Fixture : Memory {
  explicit Fixture(const ReadOptions& chosen = {}, uint32_t ranges = 8)
      : options(chosen),
        reader(protection, sends.queue, identity, counters, options, ranges, waker) {}

  Begun begin(const SendWorkRequest& request) {
    REQUIRE_FALSE(sends.queue.post(request));
    return reader.begin_read(*sends.queue.pending(), now);
  }
  /// A Read into [offset, offset + length) of the canvas.
  Begun read(size_t offset, size_t length, const ReadLimits& limits = {},
             const Address& from = kTarget) {
    SendWorkRequest request{.sges = sge(region, offset, length),
                            .destination = from,
                            .opcode = WrOpcode::rdma_read,
                            .remote = {.stag = 0xABCD, .offset = 5000}};
    request.limits = limits;
    return begin(request);
  }
  /// The Read Requests that go out now.
  std::vector<Segment> requests() {
    std::vector<Segment> all;
    for (const Sent& sent : outlet.send(reader, now)) all.push_back(sent.segment());
    return all;
  }
  /// Bytes of the response to a request, from `offset` on.
  static Segment response(const Segment& request, uint32_t offset, std::string_view text) {
    Segment made;
    made.opcode = rdmap::Opcode::read_response;
    made.stag = request.request.sink_stag;
    made.tagged_offset = request.request.sink_offset + offset;
    made.payload = bytes_of(text);
    made.last = offset + text.size() == request.request.length;
    return made;
  }
  std::optional<Counter> take(const Segment& segment, const Address& from = kTarget) {
    return reader.handle_response(segment, from, now).drop;
  }
  std::optional<Counter> answer(const Segment& request, uint32_t offset, std::string_view text) {
    return take(response(request, offset, text));
  }
  static rdmap::ErrorReport error_about(const Segment& request, TerminateCode code,
                                        std::vector<std::byte>& headers) {
    headers.resize(DatagramBurst::kHeaderBytes);
    headers.resize(rdmap::encode_segment_headers(request, headers));
    return {.code = code, .headers = headers, .segment_bytes = headers.size()};
  }

  Time now = kNow;
  Counters counters;
  Sends sends;
  STag region = add(0, Canvas::kSize, Access::local_write);
  dgram::Identity identity{SipKey{3, 4}};
  CountingWaker waker;
  ReadOptions options;
  UdReader reader;
  Outlet outlet;
};

}  // namespace

TEST_CASE("ud reader: a request names what is asked for, and a sink that only its target knows") {
  Fixture f;
  f.reader.set_first_msn(UINT32_MAX);
  CHECK(f.read(10, 20) == Begun::begun);
  CHECK(f.reader.waiting());
  CHECK(f.waker.woken == 1);
  const auto sent = f.requests();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].opcode == rdmap::Opcode::read_request);
  CHECK(sent[0].msn == UINT32_MAX);
  CHECK(sent[0].request.source_stag == 0xABCD);
  CHECK(sent[0].request.source_offset == 5000);
  CHECK(sent[0].request.length == 20);
  CHECK(sent[0].request.sink_stag != f.region);
  CHECK_FALSE(f.reader.waiting());
  CHECK(f.read(40, 20) == Begun::begun);
  const auto next = f.requests();
  REQUIRE(next.size() == 1);
  CHECK(next[0].msn == 0);
  CHECK(next[0].request.sink_stag != sent[0].request.sink_stag);
}

TEST_CASE(
    "ud reader: responses in any order are placed, and the Read ends when all bytes are there") {
  Fixture f;
  f.read(10, 6);
  const Segment request = f.requests().at(0);
  CHECK_FALSE(f.answer(request, 3, "def"));
  CHECK(f.canvas.has_only(13, "def"));
  CHECK(f.sends.reported().empty());
  CHECK_FALSE(f.answer(request, 0, "abc"));
  CHECK(f.canvas.has_only(10, "abcdef"));
  const auto done = f.sends.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::success);
  CHECK(done[0].opcode == WcOpcode::rdma_read);
  CHECK(done[0].validity.complete());
  CHECK(done[0].valid_bytes == 6);
  REQUIRE(f.reader.next_expiry() != Time::max());  // which is not moved with each byte
  f.reader.expire(f.reader.next_expiry());
  CHECK(f.reader.next_expiry() == Time::max());
}

TEST_CASE("ud reader: once a Read is over, the STag of its sink names nothing") {
  Fixture f;
  f.read(10, 3);
  const Segment request = f.requests().at(0);
  REQUIRE_FALSE(f.answer(request, 0, "abc"));
  CHECK(f.answer(request, 0, "xyz") == Counter::drop_response);
  f.read(10, 3);  // in the same place
  f.requests();
  CHECK(f.answer(request, 0, "xyz") == Counter::drop_response);
  CHECK(f.canvas.has_only(10, "abc"));
}

TEST_CASE("ud reader: a response comes from the address that was asked, to a sink that was named") {
  Fixture f;
  f.read(10, 3);
  const Segment request = f.requests().at(0);
  const Segment response = f.response(request, 0, "abc");
  CHECK(f.take(response, kOther) == Counter::drop_response);
  Segment forged = response;
  forged.stag ^= 1;
  CHECK(f.take(forged) == Counter::drop_response);
  forged = response;
  forged.stag = f.region;
  CHECK(f.take(forged) == Counter::drop_response);
  CHECK(f.canvas.untouched());
  CHECK_FALSE(f.take(response));
}

TEST_CASE("ud reader: a response outside its part, or with the wrong end, touches nothing") {
  Fixture f;
  f.read(10, 6);
  const Segment request = f.requests().at(0);
  Segment before = f.response(request, 0, "ab");
  before.tagged_offset -= 1;
  CHECK(f.take(before) == Counter::drop_response);
  CHECK(f.take(f.response(request, 7, "a")) == Counter::drop_response);
  CHECK(f.take(f.response(request, 5, "ab")) == Counter::drop_oversized);
  Segment end = f.response(request, 0, "abc");
  end.last = true;
  CHECK(f.take(end) == Counter::drop_contradiction);
  end = f.response(request, 3, "def");
  end.last = false;
  CHECK(f.take(end) == Counter::drop_contradiction);
  CHECK(f.canvas.untouched());
}

TEST_CASE("ud reader: bytes that are there are not written again") {
  Fixture f;
  f.read(10, 6);
  const Segment request = f.requests().at(0);
  REQUIRE_FALSE(f.answer(request, 0, "abc"));
  CHECK(f.answer(request, 0, "xyz") == Counter::drop_duplicate);
  CHECK(f.canvas.has_only(10, "abc"));
}

TEST_CASE("ud reader: a response that would add one range too many is not placed") {
  Fixture f({}, 2);
  f.read(10, 9);
  const Segment request = f.requests().at(0);
  REQUIRE_FALSE(f.answer(request, 0, "a"));
  REQUIRE_FALSE(f.answer(request, 2, "c"));
  CHECK(f.answer(request, 4, "e") == Counter::drop_range_limit);
  CHECK(*f.canvas.at(14) == Canvas::kUntouched);
  CHECK_FALSE(f.answer(request, 1, "b"));
  CHECK_FALSE(f.answer(request, 4, "e"));
}

TEST_CASE("ud reader: a Read of no bytes ends with an empty response") {
  Fixture f;
  f.begin({.destination = kTarget, .opcode = WrOpcode::rdma_read});
  const auto sent = f.requests();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].request.length == 0);
  CHECK_FALSE(f.answer(sent[0], 0, ""));
  CHECK(f.sends.statuses() == Statuses{WcStatus::success});
}

TEST_CASE(
    "ud reader: nothing is asked for that could not be placed, nor placed where memory has gone") {
  Fixture f;
  f.read(10, 6);
  f.read(30, 6);
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.requests().empty());
  CHECK(f.sends.statuses() ==
        Statuses{WcStatus::local_protection_error, WcStatus::local_protection_error});
  Fixture g;
  g.read(10, 6);
  const Segment request = g.requests().at(0);
  REQUIRE_FALSE(g.answer(request, 0, "abc"));
  REQUIRE(g.stags.erase(g.region));
  CHECK(g.answer(request, 3, "def") == Counter::drop_response);
  CHECK(g.canvas.has_only(10, "abc"));
  CHECK(g.sends.statuses() == Statuses{WcStatus::local_protection_error});
}

TEST_CASE("ud reader: one Read more than may be under way waits, and is told when there is room") {
  Fixture f({.max_outstanding = 2});
  CHECK(f.read(0, 3) == Begun::begun);
  CHECK(f.read(10, 3) == Begun::begun);
  CHECK(f.read(20, 3) == Begun::full);
  const auto sent = f.requests();
  const int before = f.waker.woken;
  REQUIRE_FALSE(f.answer(sent.at(1), 0, "abc"));
  CHECK(f.waker.woken == before + 1);
  CHECK(f.reader.begin_read(*f.sends.queue.pending(), f.now) == Begun::begun);
  CHECK(f.reader.under_way() == 2);
}

TEST_CASE("ud reader: an Error ends the Read whose request it repeats, from the target alone") {
  Fixture f;
  f.read(10, 3);
  const Segment request = f.requests().at(0);
  std::vector<std::byte> headers;
  const auto error = f.error_about(request, fault::kAccessRights, headers);
  CHECK_FALSE(f.reader.handle_error(error, kOther));
  std::vector<std::byte> others;
  Segment guessed = request;
  ++guessed.nonce;
  CHECK_FALSE(f.reader.handle_error(f.error_about(guessed, fault::kAccessRights, others), kTarget));
  guessed = request;
  ++guessed.msn;
  CHECK_FALSE(f.reader.handle_error(f.error_about(guessed, fault::kAccessRights, others), kTarget));
  CHECK_FALSE(f.reader.handle_error({.code = fault::kAccessRights}, kTarget));
  CHECK(f.sends.statuses().empty());
  CHECK(f.reader.handle_error(error, kTarget));
  CHECK(f.sends.statuses() == Statuses{WcStatus::remote_access_error});
  CHECK_FALSE(f.reader.handle_error(error, kTarget));
}

TEST_CASE(
    "ud reader: an Error that is not about the memory that was named is one of the operation") {
  Fixture f;
  f.read(10, 3);
  std::vector<std::byte> headers;
  const auto error = f.error_about(f.requests().at(0), fault::kStreamCatastrophic, headers);
  CHECK(f.reader.handle_error(error, kTarget));
  CHECK(f.sends.statuses() == Statuses{WcStatus::remote_operation_error});
}

TEST_CASE("ud reader: an Error about a request that was not sent yet is no answer to it") {
  Fixture f;
  f.read(10, 3);
  const auto planned = f.outlet.fill(f.reader, f.now);
  std::vector<std::byte> headers;
  const auto error = f.error_about(planned.at(0).segment(), fault::kAccessRights, headers);
  CHECK_FALSE(f.reader.handle_error(error, kTarget));
}

TEST_CASE("ud reader: a Challenge is echoed, and its request sent once more") {
  Fixture f;
  f.read(10, 3);
  const Segment request = f.requests().at(0);
  dgram::Challenge challenge{.nonce = request.request.sink_offset};
  challenge.cookie[0] = std::byte{9};
  CHECK_FALSE(f.reader.handle_challenge({.nonce = challenge.nonce + 1}, kTarget));
  CHECK_FALSE(f.reader.handle_challenge(challenge, kOther));
  CHECK(f.reader.handle_challenge(challenge, kTarget));
  CHECK_FALSE(f.reader.handle_challenge(challenge, kTarget));  // one for each request
  const auto sent = f.outlet.send(f.reader, f.now);
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].control().type == dgram::ControlType::echo);
  CHECK(sent[0].control().challenge.nonce == challenge.nonce);
  CHECK(sent[0].control().challenge.cookie == challenge.cookie);
  CHECK(sent[1].segment().request.sink_stag == request.request.sink_stag);
  CHECK_FALSE(f.answer(request, 0, "abc"));
}

TEST_CASE("ud reader: nobody makes a Read send more than a few requests by Challenges") {
  Fixture f;
  f.read(10, 3);
  const dgram::Challenge challenge{.nonce = f.requests().at(0).request.sink_offset};
  for (uint32_t i = 0; i < UdReader::kMaxChallenges; ++i) {
    CHECK(f.reader.handle_challenge(challenge, kTarget));
    CHECK(f.outlet.send(f.reader, f.now).size() == 2);
  }
  CHECK_FALSE(f.reader.handle_challenge(challenge, kTarget));
}

TEST_CASE("ud reader: after something of the response no Challenge is expected") {
  Fixture f;
  f.read(10, 6);
  const Segment request = f.requests().at(0);
  REQUIRE_FALSE(f.answer(request, 0, "abc"));
  CHECK_FALSE(f.reader.handle_challenge({.nonce = request.request.sink_offset}, kTarget));
}

TEST_CASE("ud reader: a Read without news for its timeout ends, and tells what is valid") {
  Fixture f({.timeout = kTimeout});
  f.read(10, 9);
  const Segment request = f.requests().at(0);
  f.now += 60ms;
  REQUIRE_FALSE(f.answer(request, 3, "def"));
  f.reader.expire(kNow + 60ms + kTimeout - 1ns);
  CHECK(f.sends.reported().empty());
  f.reader.expire(kNow + 60ms + kTimeout);
  const auto done = f.sends.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::timeout);
  CHECK(done[0].valid_bytes == 3);
  CHECK(done[0].validity.first_gap() == ValidityMap::Range{0, 3});
  CHECK(done[0].validity.contains(3, 3));
  CHECK(f.counters.get(Counter::read_timeouts) == 1);
  CHECK(f.answer(request, 0, "abc") == Counter::drop_response);
}

TEST_CASE("ud reader: a retry asks for what is missing alone, by other names") {
  Fixture f({.timeout = kTimeout, .retries = 1});
  f.read(10, 9);
  const Segment request = f.requests().at(0);
  REQUIRE_FALSE(f.answer(request, 3, "def"));
  f.now += kTimeout;
  f.reader.expire(f.now);
  const auto again = f.requests();
  REQUIRE(again.size() == 2);
  CHECK(again[0].request.source_offset == 5000);
  CHECK(again[0].request.length == 3);
  CHECK(again[1].request.source_offset == 5006);
  CHECK(again[1].request.length == 3);
  CHECK(f.counters.get(Counter::read_retries) == 2);
  CHECK(f.answer(request, 0, "xyz") == Counter::drop_response);
  CHECK_FALSE(f.answer(again[1], 0, "ghi"));
  CHECK_FALSE(f.answer(again[0], 0, "abc"));
  CHECK(f.canvas.has_only(10, "abcdefghi"));
  CHECK(f.sends.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("ud reader: a Read ends at its deadline whatever has come, and though retries are left") {
  Fixture f({.timeout = kTimeout, .retries = 100});
  f.read(10, 200, {.deadline = 250ms});
  for (uint32_t i = 0; i < 4; ++i) {
    const auto sent = f.requests();
    if (!sent.empty()) f.answer(sent[0], i, "x");
    f.now += 60ms;
    f.reader.expire(f.now);
    CHECK(f.sends.reported().empty());
  }
  f.now = kNow + 250ms;
  f.reader.expire(f.now);
  CHECK(f.sends.statuses() == Statuses{WcStatus::timeout});
}

TEST_CASE("ud reader: the limits of a request go before those of the queue pair") {
  Fixture f({.timeout = kTimeout, .retries = 5});
  f.read(10, 3, {.timeout = 10ms, .retries = 0});
  f.requests();
  CHECK(f.reader.next_expiry() == kNow + 10ms);
  f.reader.expire(kNow + 10ms);
  CHECK(f.sends.statuses() == Statuses{WcStatus::timeout});
}

TEST_CASE(
    "ud reader: a later Read of the same target is not silent while an earlier one is answered") {
  Fixture f({.timeout = kTimeout});
  f.read(0, 6);
  f.read(10, 3);
  f.read(20, 3, {}, kOther);
  const auto sent = f.requests();
  f.now += 60ms;
  REQUIRE_FALSE(f.answer(sent.at(0), 0, "abc"));
  f.now = kNow + kTimeout;
  f.reader.expire(f.now);
  CHECK(f.reader.under_way() == 2);  // the one of the other target is over
  f.now = kNow + 60ms + kTimeout;
  f.reader.expire(f.now);
  CHECK(f.reader.under_way() == 0);
}

TEST_CASE("ud reader: a refusal of the link ends the Read with its errno") {
  Fixture f;
  f.read(10, 3);
  f.reader.refused(f.outlet.fill(f.reader, f.now).at(0).tag, ENETUNREACH);
  const auto done = f.sends.reported();
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::local_qp_operation_error);
  CHECK(done[0].vendor_error == ENETUNREACH);
  CHECK_FALSE(f.reader.waiting());
}

TEST_CASE("ud reader: a long Read goes as several requests, of which so many are under way") {
  constexpr uint32_t kPart = rdmap::kMaxReadRequest;
  Fixture f({.window = 2});
  std::vector<std::byte> memory(3 * size_t{kPart} + 1);
  const STag stag = f.stags.insert({.protection_domain = kDomain,
                                    .access = Access::local_write,
                                    .memory = memory.data(),
                                    .length = memory.size()});
  f.begin({.sges = Sge{memory.data(), static_cast<uint32_t>(memory.size()), stag},
           .destination = kTarget,
           .opcode = WrOpcode::rdma_read,
           .remote = {.stag = 1, .offset = 5000}});
  const auto sent = f.requests();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].request.length == kPart);
  CHECK(sent[1].request.source_offset == 5000 + uint64_t{kPart});
  const std::string all(kPart, 'x');
  // Something of the second is there: nothing more is expected of the first.
  REQUIRE_FALSE(f.answer(sent[1], 0, "x"));
  const auto third = f.requests();
  REQUIRE(third.size() == 1);
  CHECK(third[0].request.source_offset == 5000 + 2 * uint64_t{kPart});
  REQUIRE_FALSE(f.answer(sent[0], 0, all));  // though it may still come
  REQUIRE_FALSE(f.answer(sent[1], 1, std::string_view(all).substr(1)));
  const auto last = f.requests();
  REQUIRE(last.size() == 1);
  CHECK(last[0].request.length == 1);
  REQUIRE_FALSE(f.answer(third[0], 0, all));
  REQUIRE_FALSE(f.answer(last[0], 0, "x"));
  CHECK(f.sends.statuses() == Statuses{WcStatus::success});
  CHECK(std::ranges::count(memory, std::byte{'x'}) == static_cast<ptrdiff_t>(memory.size()));
}

TEST_CASE("ud reader: a reset forgets the Reads, and leaves their requests to the flush") {
  Fixture f;
  f.read(10, 3);
  const Segment request = f.requests().at(0);
  f.reader.reset();
  CHECK(f.reader.under_way() == 0);
  CHECK(f.reader.next_expiry() == Time::max());
  CHECK(f.answer(request, 0, "abc") == Counter::drop_response);
  CHECK(f.canvas.untouched());
  f.sends.queue.flush();
  CHECK(f.sends.statuses() == Statuses{WcStatus::wr_flush_error});
}
