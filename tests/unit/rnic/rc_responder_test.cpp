// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_responder.h"

#include <cstring>
#include <optional>
#include "support/catch.h"

#include "parts.h"
#include "rdmap/terminate.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

using ddp::RegionFault;
using rdmap::AtomicRequest;
using rdmap::ReadRequest;

constexpr uint64_t kTop = UINT64_MAX;

// RFC 7306 section 5.2.1: the operation codes on the wire.
constexpr uint8_t kFetchAdd = 0;
constexpr uint8_t kCompareSwap = 2;
constexpr uint8_t kUnknownOperation = 15;

struct Fixture : Memory {
  explicit Fixture(uint16_t ird = 16) { responder.start(ird); }

  std::optional<TerminateCode> read(STag stag, uint64_t offset, uint32_t length) {
    return responder.take(
        ReadRequest{.length = length, .source_stag = stag, .source_offset = offset});
  }
  static AtomicRequest atomic(STag stag, uint64_t offset, uint8_t operation = kFetchAdd,
                              uint64_t operand = 1) {
    return {.operation_code = operation,
            .stag = stag,
            .offset = offset,
            .operand = operand,
            .mask = operation == kCompareSwap ? ~uint64_t{0} : 0,
            .compare_mask = ~uint64_t{0}};
  }
  std::optional<TerminateCode> take_atomic(STag stag, uint64_t offset,
                                           uint8_t operation = kFetchAdd) {
    return responder.take(atomic(stag, offset, operation));
  }
  uint64_t word(size_t offset) {
    uint64_t value = 0;
    std::memcpy(&value, canvas.at(offset), sizeof value);
    return value;
  }
  void set_word(size_t offset, uint64_t value) {
    std::memcpy(canvas.at(offset), &value, sizeof value);
  }
  /// The sink STag of the Read that is next; 0: none is.
  uint32_t next() {
    const RcResponder::Request* const request = responder.next();
    return request == nullptr ? 0 : std::get<ReadRequest>(*request).sink_stag;
  }

  RcResponder responder{protection};
};

}  // namespace

TEST_CASE("rc responder: as many requests wait as IRD allows, and one more ends the connection") {
  Fixture f(2);
  const STag stag = f.add(0, 100);
  CHECK_FALSE(f.read(stag, 0, 10));
  CHECK_FALSE(f.take_atomic(stag, 0));
  CHECK(f.read(stag, 0, 10) == rdmap::fault::kNoBuffer);
  CHECK(f.read(stag ^ 1, 0, 10) == rdmap::fault::kNoBuffer);  // the queue is checked first
  CHECK(f.read(0, 0, 0) == rdmap::fault::kNoBuffer);          // a Read of no bytes takes a place
  f.responder.begin();
  CHECK(f.read(stag, 0, 10) == rdmap::fault::kNoBuffer);
  f.responder.finish();
  CHECK_FALSE(f.read(stag, 0, 10));
}

TEST_CASE("rc responder: with an IRD of 0 no request is taken") {
  Fixture f(0);
  CHECK(f.read(f.add(0, 100), 0, 10) == rdmap::fault::kNoBuffer);
  CHECK(f.responder.next() == nullptr);
}

TEST_CASE(
    "rc responder: requests are answered in the order they came in, however often it goes round") {
  Fixture f(3);
  uint32_t came = 0, answered = 0;
  const auto come = [&] { REQUIRE_FALSE(f.responder.take(ReadRequest{.sink_stag = ++came})); };
  come();
  for (int round = 0; round < 20; ++round) {
    come();
    come();
    for (int i = 0; i < 2; ++i) {
      CHECK(f.next() == ++answered);
      f.responder.begin();
      f.responder.finish();
    }
  }
  CHECK(f.next() == came);
}

TEST_CASE("rc responder: several answers may be begun before the first is wholly sent") {
  Fixture f(3);
  for (uint32_t i = 1; i <= 3; ++i) REQUIRE_FALSE(f.responder.take(ReadRequest{.sink_stag = i}));
  f.responder.begin();
  f.responder.begin();
  CHECK(f.next() == 3);
  f.responder.finish();
  CHECK(f.next() == 3);
  f.responder.begin();
  CHECK(f.responder.next() == nullptr);
  f.responder.finish();
  f.responder.finish();
  REQUIRE_FALSE(f.responder.take(ReadRequest{.sink_stag = 4}));
  CHECK(f.next() == 4);
}

TEST_CASE("rc responder: a new stream begins without requests, and with an IRD of its own") {
  Fixture f(2);
  REQUIRE_FALSE(f.responder.take(ReadRequest{.sink_stag = 1}));
  f.responder.begin();
  f.responder.start(1);
  CHECK(f.responder.next() == nullptr);
  CHECK_FALSE(f.responder.take(ReadRequest{.sink_stag = 2}));
  CHECK(f.next() == 2);
  CHECK(f.responder.take(ReadRequest{}) == rdmap::fault::kNoBuffer);
}

TEST_CASE(
    "rc responder: of several faults of a Read the first in the order of the checks is told") {
  Fixture f;
  const STag foreign = f.add(0, 100, Access::none, 1000, kDomain + 1);
  const STag closed = f.add(0, 100, Access::remote_write | Access::local_write, 1000);
  const STag stag = f.add(0, 100, Access::remote_read, 1000);
  CHECK(f.read(stag ^ 1, kTop, 2) == rdmap::fault::kInvalidStag);
  CHECK(f.read(foreign, kTop, 2) == rdmap::fault::kStagNotAssociated);
  CHECK(f.read(closed, kTop, 2) == rdmap::fault::kAccessRights);
  CHECK(f.read(stag, kTop, 2) == rdmap::fault::kOffsetWrap);
  CHECK(f.read(stag, kTop, 1) == rdmap::fault::kBaseOrBounds);
  CHECK(f.read(stag, 1099, 2) == rdmap::fault::kBaseOrBounds);
  CHECK(f.read(stag, 999, 2) == rdmap::fault::kBaseOrBounds);
  CHECK(f.responder.next() == nullptr);  // none of these waits
  CHECK_FALSE(f.read(stag, 1000, 100));
}

TEST_CASE("rc responder: a Read is answered from the memory that it names, and no other") {
  Fixture f;
  const STag stag = f.add(16, 100, Access::remote_read, 5000);
  const auto source =
      f.responder.source({.length = 30, .source_stag = stag, .source_offset = 5070});
  REQUIRE(source);
  CHECK(source->address == f.canvas.at(16 + 70));
  CHECK(source->length == 30);
  CHECK_FALSE(f.responder.source({.length = 31, .source_stag = stag, .source_offset = 5070}));
  REQUIRE(f.stags.erase(stag));
  CHECK_FALSE(f.responder.source({.length = 30, .source_stag = stag, .source_offset = 5070}));
}

TEST_CASE("rc responder: a Read that waits finds its memory invalidated when its turn comes") {
  Fixture f;
  const STag stag = f.add(0, 100);
  REQUIRE_FALSE(f.read(stag, 0, 100));
  REQUIRE(f.protection.invalidate(stag) == RegionFault::none);
  REQUIRE(f.responder.next() != nullptr);
  CHECK_FALSE(f.responder.source(std::get<ReadRequest>(*f.responder.next())));
}

TEST_CASE("rc responder: the memory that a Read of no bytes names is not looked at") {
  Fixture f;
  CHECK_FALSE(f.read(0xDEADBEEF, kTop, 0));
  const auto source = f.responder.source({.source_stag = 0xDEADBEEF, .source_offset = kTop});
  REQUIRE(source);
  CHECK(source->length == 0);
}

TEST_CASE("rc responder: a window serves the Reads of its queue pair, and no other's") {
  Fixture f;
  const STag region = f.add(0, 100);
  const STag window = f.add_window();
  const MemoryBinding binding{.stag = window,
                              .region = region,
                              .address = f.canvas.at(40),
                              .length = 10,
                              .access = Access::remote_read,
                              .base = 0};
  REQUIRE(f.protection.bind(binding) == RegionFault::none);
  CHECK(f.responder.source({.length = 10, .source_stag = window})->address == f.canvas.at(40));
  ddp::ProtectionContext other(f.stags, kDomain);
  other.set_queue_pair(kQueuePair + 1);
  RcResponder stranger(other);
  stranger.start(1);
  CHECK(stranger.take(ReadRequest{.length = 10, .source_stag = window}) ==
        rdmap::fault::kStagNotAssociated);
}

TEST_CASE(
    "rc responder: of several faults of an atomic the first in the order of the checks is told") {
  Fixture f;
  const STag foreign = f.add(0, 100, kAllRights, 1000, kDomain + 1);
  const STag closed = f.add(0, 100, Access::remote_read | Access::remote_write, 1000);
  const STag stag = f.add(0, 100, Access::local_write | Access::remote_atomic, 1000);
  CHECK(f.take_atomic(stag ^ 1, kTop, kUnknownOperation) == rdmap::fault::kUnexpectedOpcode);
  CHECK(f.take_atomic(stag ^ 1, kTop) == rdmap::fault::kInvalidStag);
  CHECK(f.take_atomic(foreign, kTop) == rdmap::fault::kStagNotAssociated);
  CHECK(f.take_atomic(closed, kTop) == rdmap::fault::kAccessRights);
  CHECK(f.take_atomic(stag, kTop - 6) == rdmap::fault::kOffsetWrap);
  CHECK(f.take_atomic(stag, 1093) == rdmap::fault::kBaseOrBounds);
  for (uint64_t offset = 1001; offset < 1008; ++offset)
    CHECK(f.take_atomic(stag, offset) == rdmap::fault::kStreamCatastrophic);
  CHECK_FALSE(f.take_atomic(stag, 1008));
}

TEST_CASE("rc responder: the address of an atomic has to be aligned, not its tagged offset") {
  Fixture f;
  const STag stag = f.add(4, 100, kAllRights, 0);
  CHECK(f.take_atomic(stag, 8) == rdmap::fault::kStreamCatastrophic);
  CHECK_FALSE(f.take_atomic(stag, 4));
}

TEST_CASE("rc responder: an atomic is done when its turn comes, to its eight bytes alone") {
  Fixture f;
  f.set_word(16, 41);
  Canvas before = f.canvas;
  const STag stag = f.add(0, 100);
  REQUIRE_FALSE(f.take_atomic(stag, 16));
  CHECK(f.word(16) == 41);
  const auto& request = std::get<AtomicRequest>(*f.responder.next());
  CHECK(f.responder.perform(request) == uint64_t{41});
  CHECK(f.word(16) == 42);
  f.set_word(16, 41);
  CHECK(std::memcmp(f.canvas.at(0), before.at(0), Canvas::kSize) == 0);
}

TEST_CASE("rc responder: a compare-and-swap tells what was there, whether it swapped or not") {
  Fixture f;
  f.set_word(0, 7);
  const STag stag = f.add(0, 8);
  AtomicRequest request = f.atomic(stag, 0, kCompareSwap, 100);
  request.compare = 8;
  CHECK(f.responder.perform(request) == uint64_t{7});
  CHECK(f.word(0) == 7);
  request.compare = 7;
  CHECK(f.responder.perform(request) == uint64_t{7});
  CHECK(f.word(0) == 100);
}

TEST_CASE("rc responder: a fetch-and-add wraps within 64 bits") {
  Fixture f;
  f.set_word(0, kTop);
  CHECK(f.responder.perform(f.atomic(f.add(0, 8), 0, kFetchAdd, 3)) == kTop);
  CHECK(f.word(0) == 2);
}

TEST_CASE("rc responder: an atomic whose memory has gone meanwhile changes nothing") {
  Fixture f;
  f.set_word(0, 7);
  const STag stag = f.add(0, 100);
  const STag other = f.add(0, 100);
  REQUIRE_FALSE(f.take_atomic(stag, 0));
  REQUIRE(f.stags.erase(stag));
  CHECK_FALSE(f.responder.perform(f.atomic(stag, 0)));
  REQUIRE(f.protection.invalidate(other) == RegionFault::none);
  CHECK_FALSE(f.responder.perform(f.atomic(other, 0)));
  CHECK(f.word(0) == 7);
}
