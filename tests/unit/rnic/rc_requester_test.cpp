// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_requester.h"

#include <array>
#include <cstring>
#include <optional>
#include "support/catch.h"

#include "parts.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

namespace fault = rdmap::fault;
using rdmap::StreamSegment;

/// A requester whose sinks lie in a region of the whole canvas, with tagged offsets from 1000 on.
struct Fixture : Memory {
  Fixture() { requester.start(4); }

  /// A request is sent that reads into [offset, offset + length) of the canvas.
  uint32_t read(size_t offset, size_t length, WrOpcode opcode = WrOpcode::rdma_read) {
    return request({.sges = sge(region, offset, length), .opcode = opcode});
  }
  uint32_t fetch_add(size_t offset) {
    return request({.sges = sge(region, offset, 8), .opcode = WrOpcode::fetch_add});
  }
  uint32_t request(const SendWorkRequest& request) {
    REQUIRE_FALSE(sends.queue.post(request));
    sends.queue.sent();
    return requester.begin();
  }
  StreamSegment segment(uint64_t offset, std::string_view text, bool last = true) {
    return {.opcode = rdmap::Opcode::read_response,
            .last = last,
            .stag = region,
            .tagged_offset = offset,
            .payload = bytes_of(text)};
  }
  std::optional<TerminateCode> take(uint64_t offset, std::string_view text, bool last = true) {
    return requester.take_read_response(segment(offset, text, last));
  }
  Statuses statuses() { return sends.statuses(); }

  Sends sends;
  STag region = add(0, Canvas::kSize, Access::local_write, 1000);
  RcRequester requester{protection, sends.queue};
};

}  // namespace

TEST_CASE("rc requester: as many requests are outstanding as ORD allows, with numbers in a row") {
  Fixture f;
  CHECK(f.requester.idle());
  for (uint32_t id = 0; id < 4; ++id) {
    CHECK(f.requester.has_room());
    CHECK(f.read(0, 1) == id);
  }
  CHECK_FALSE(f.requester.has_room());
  REQUIRE_FALSE(f.take(1000, "a"));
  CHECK(f.requester.has_room());
  CHECK(f.read(0, 1) == 4);
  f.requester.start(0);
  CHECK(f.requester.idle());
  CHECK_FALSE(f.requester.has_room());
}

TEST_CASE("rc requester: a sink is named by the key of its memory and the tagged offset there") {
  Fixture f;
  f.read(30, 10);
  const auto sink = f.requester.sink(*f.sends.queue.awaiting());
  REQUIRE(sink);
  CHECK(sink->stag == f.region);
  CHECK(sink->offset == 1030);
}

TEST_CASE("rc requester: there is no sink where the memory may not be written, or has gone") {
  Fixture f;
  const STag closed = f.add(0, 10, Access::remote_write);
  f.request({.sges = f.sge(closed, 0, 10), .opcode = WrOpcode::rdma_read});
  CHECK_FALSE(f.requester.sink(*f.sends.queue.awaiting()));
  Fixture g;
  g.read(0, 10);
  REQUIRE(g.stags.erase(g.region));
  CHECK_FALSE(g.requester.sink(*g.sends.queue.awaiting()));
}

TEST_CASE("rc requester: a request without bytes has a sink that names nothing") {
  Fixture f;
  f.request({.sges = {}, .opcode = WrOpcode::rdma_read});
  const auto sink = f.requester.sink(*f.sends.queue.awaiting());
  REQUIRE(sink);
  CHECK(sink->stag == 0);
  CHECK(sink->offset == 0);
}

TEST_CASE("rc requester: a response is placed segment by segment, and ends its request") {
  Fixture f;
  f.read(10, 6);
  CHECK_FALSE(f.take(1010, "abc", false));
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.statuses().empty());
  CHECK_FALSE(f.take(1013, "def"));
  CHECK(f.canvas.has_only(10, "abcdef"));
  CHECK(f.statuses() == Statuses{WcStatus::success});
  CHECK(f.requester.idle());
}

TEST_CASE("rc requester: responses go to the requests in order, each from its beginning") {
  Fixture f;
  f.read(0, 3);
  f.read(100, 3);
  REQUIRE_FALSE(f.take(1000, "abc"));
  CHECK(f.take(1000, "abc") == fault::kTaggedBaseOrBounds);  // the second one is to come
  CHECK(f.statuses() == Statuses{WcStatus::success, WcStatus::bad_response_error});
  CHECK(f.canvas.has_only(0, "abc"));
}

TEST_CASE("rc requester: a response names its sink, and not other memory that may be written") {
  Fixture f;
  const STag other = f.add(0, Canvas::kSize, kAllRights, 1000);
  f.read(10, 3);
  StreamSegment segment = f.segment(1010, "abc");
  segment.stag = other;
  CHECK(f.requester.take_read_response(segment) == fault::kTaggedInvalidStag);
  CHECK(f.canvas.untouched());
  CHECK(f.statuses() == Statuses{WcStatus::bad_response_error});
}

TEST_CASE("rc requester: a response that leaves its place, or its order, writes nothing") {
  for (const uint64_t offset : {uint64_t{1009}, uint64_t{1011}, uint64_t{0}, UINT64_MAX}) {
    CAPTURE(offset);
    Fixture f;
    f.read(10, 3);
    CHECK(f.take(offset, "abc") == fault::kTaggedBaseOrBounds);
    CHECK(f.canvas.untouched());
    CHECK(f.statuses() == Statuses{WcStatus::bad_response_error});
  }
}

TEST_CASE("rc requester: a segment that repeats bytes which are there is out of order") {
  Fixture f;
  f.read(10, 6);
  REQUIRE_FALSE(f.take(1010, "abc", false));
  CHECK(f.take(1010, "xyz", false) == fault::kTaggedBaseOrBounds);
  CHECK(f.canvas.has_only(10, "abc"));
}

TEST_CASE("rc requester: a response is neither longer nor shorter than its request") {
  Fixture longer;
  longer.read(10, 3);
  CHECK(longer.take(1010, "abcd", false) == fault::kTaggedBaseOrBounds);
  CHECK(longer.canvas.untouched());
  Fixture shorter;
  shorter.read(10, 3);
  CHECK(shorter.take(1010, "ab", true) == fault::kTaggedBaseOrBounds);
  CHECK(shorter.canvas.untouched());
}

TEST_CASE(
    "rc requester: segments of no bytes may name anything and end nothing but a whole response") {
  Fixture f;
  f.read(10, 3);
  StreamSegment empty = f.segment(UINT64_MAX, "", false);
  empty.stag = 0xDEADBEEF;
  CHECK_FALSE(f.requester.take_read_response(empty));
  CHECK_FALSE(f.take(1010, "abc", false));
  CHECK(f.statuses().empty());  // its end is still to come
  empty.last = true;
  CHECK_FALSE(f.requester.take_read_response(empty));
  CHECK(f.statuses() == Statuses{WcStatus::success});

  Fixture early;
  early.read(10, 3);
  CHECK(early.requester.take_read_response(empty) == fault::kTaggedBaseOrBounds);
}

TEST_CASE("rc requester: a Read of no bytes is answered by a segment of none") {
  Fixture f;
  f.request({.sges = {}, .opcode = WrOpcode::rdma_read});
  CHECK(f.take(0, "a") == fault::kTaggedBaseOrBounds);
  Fixture g;
  g.request({.sges = {}, .opcode = WrOpcode::rdma_read});
  CHECK_FALSE(g.take(0, ""));
  CHECK(g.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("rc requester: a response that nothing was asked for is a fault of the peer") {
  Fixture f;
  CHECK(f.take(1000, "abc") == fault::kTaggedInvalidStag);
  CHECK(f.requester.take_atomic_response({}) == fault::kNoBuffer);
  f.fetch_add(0);
  CHECK(f.take(1000, "abcdefgh") == fault::kTaggedInvalidStag);
  CHECK(f.canvas.untouched());
  Fixture g;
  g.read(0, 8);
  CHECK(g.requester.take_atomic_response({.value = 1}) == fault::kNoBuffer);
  CHECK(g.canvas.untouched());
}

TEST_CASE("rc requester: memory that goes between two segments ends the request where it is") {
  const bool erased = GENERATE(true, false);
  Fixture f;
  f.read(10, 6);
  REQUIRE_FALSE(f.take(1010, "abc", false));
  if (erased)
    f.stags.erase(f.region);
  else
    REQUIRE(f.protection.invalidate(f.region) == ddp::RegionFault::none);
  CHECK(f.take(1013, "def") == fault::kTaggedInvalidStag);
  CHECK(f.canvas.has_only(10, "abc"));
  CHECK(f.statuses() == Statuses{WcStatus::local_protection_error});
}

TEST_CASE(
    "rc requester: the value that an atomic found is placed as eight bytes of the host's order") {
  Fixture f;
  const uint64_t value = 0x0102030405060708;
  const uint32_t id = f.fetch_add(16);
  CHECK_FALSE(f.requester.take_atomic_response({.request_id = id, .value = value}));
  uint64_t placed = 0;
  std::memcpy(&placed, f.canvas.at(16), sizeof placed);
  CHECK(placed == value);
  CHECK(f.canvas.has_only(16, {reinterpret_cast<const char*>(&value), sizeof value}));
  CHECK(f.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("rc requester: an atomic's response repeats the number of its request") {
  Fixture f;
  f.read(0, 1);
  const uint32_t id = f.fetch_add(16);
  CHECK(id == 1);
  REQUIRE_FALSE(f.take(1000, "a"));
  CHECK(f.requester.take_atomic_response({.request_id = 0, .value = 7}) == fault::kUnspecified);
  CHECK(f.canvas.has_only(0, "a"));
  CHECK(f.statuses() == Statuses{WcStatus::success, WcStatus::bad_response_error});
}

TEST_CASE("rc requester: an atomic whose memory has gone places nothing") {
  Fixture f;
  const uint32_t id = f.fetch_add(16);
  REQUIRE(f.stags.erase(f.region));
  CHECK(f.requester.take_atomic_response({.request_id = id, .value = 7}) ==
        fault::kLocalCatastrophic);
  CHECK(f.canvas.untouched());
  CHECK(f.statuses() == Statuses{WcStatus::local_protection_error});
}

TEST_CASE(
    "rc requester: a Read with Invalidate closes its memory when it is done, and not before") {
  Fixture f;
  f.read(10, 6, WrOpcode::rdma_read_with_invalidate);
  REQUIRE_FALSE(f.take(1010, "abc", false));
  CHECK(f.protection.find(f.region)->valid);
  REQUIRE_FALSE(f.take(1013, "def"));
  CHECK_FALSE(f.protection.find(f.region)->valid);
  CHECK(f.statuses() == Statuses{WcStatus::success});
}

TEST_CASE(
    "rc requester: a Read whose memory cannot be invalidated says so, with its bytes placed") {
  Fixture f;
  const STag region = f.add(0, 100, Access::local_write | Access::window_bind, 0);
  const STag window = f.add_window();
  REQUIRE(f.protection.bind({.stag = window,
                             .region = region,
                             .address = f.canvas.at(0),
                             .length = 1,
                             .access = Access::remote_read}) == ddp::RegionFault::none);
  f.request({.sges = f.sge(region, 0, 3), .opcode = WrOpcode::rdma_read_with_invalidate});
  StreamSegment segment = f.segment(0, "abc");
  segment.stag = region;
  CHECK_FALSE(f.requester.take_read_response(segment));
  CHECK(f.canvas.has_only(0, "abc"));
  CHECK(f.protection.find(region)->valid);
  CHECK(f.statuses() == Statuses{WcStatus::window_bind_error});
}

TEST_CASE(
    "rc requester: a Terminate of RDMAP's goes to the oldest request, DDP's and MPA's to none") {
  const auto refused = [](const TerminateCode& code) {
    Fixture f;
    f.read(0, 3);
    f.read(0, 3);
    f.requester.refuse(code);
    return f.statuses();
  };
  CHECK(refused(fault::kAccessRights) == Statuses{WcStatus::remote_access_error});
  CHECK(refused(fault::kInvalidStag) == Statuses{WcStatus::remote_access_error});
  CHECK(refused(fault::kStreamCatastrophic) == Statuses{WcStatus::remote_operation_error});
  CHECK(refused(fault::kLocalCatastrophic) == Statuses{WcStatus::remote_operation_error});
  CHECK(refused(fault::kTaggedInvalidStag).empty());
  CHECK(refused(fault::kBadCrc).empty());
  Fixture idle;
  idle.requester.refuse(fault::kAccessRights);
  CHECK(idle.statuses().empty());
}

TEST_CASE("rc requester: the answer to the Read that makes the peer ready is no request's") {
  Fixture f;
  f.requester.begin_ready();
  f.read(10, 3);
  CHECK(f.requester.idle() == false);
  CHECK_FALSE(f.requester.target_of(f.segment(1010, "abc")));
  CHECK_FALSE(f.take(1010, ""));  // it names whatever it likes
  CHECK(f.statuses().empty());
  CHECK_FALSE(f.take(1010, "abc"));
  CHECK(f.statuses() == Statuses{WcStatus::success});
}

TEST_CASE("rc requester: the answer to that Read has no bytes, and is one segment") {
  Fixture f;
  f.requester.begin_ready();
  CHECK(f.take(1000, "a") == fault::kTaggedBaseOrBounds);
  CHECK(f.take(1000, "", false) == fault::kTaggedBaseOrBounds);
  f.requester.start(4);
  CHECK(f.take(1000, "") == fault::kTaggedInvalidStag);  // forgotten with the stream
}

TEST_CASE("rc requester: the bytes of a segment still to come count for where it goes") {
  Fixture f;
  f.read(10, 6);
  REQUIRE_FALSE(f.take(1010, "ab", false));
  StreamSegment segment = f.segment(1012, "c", false);
  segment.missing = 3;  // so that it ends with the request
  const auto target = f.requester.target_of(segment);
  REQUIRE(target);
  std::array<diwarp::Bytes, 1> pieces;
  CHECK(target->pieces(0, 4, pieces) == 1);
  CHECK(pieces[0].data() == static_cast<std::byte*>(f.canvas.at(10)) + 2);
  segment.missing = 4;
  CHECK_FALSE(f.requester.target_of(segment));
  segment.missing = 2;
  segment.last = true;
  CHECK_FALSE(f.requester.target_of(segment));
  segment.missing = 3;
  f.requester.placed(segment);
  CHECK(f.statuses() == Statuses{WcStatus::success});
}
