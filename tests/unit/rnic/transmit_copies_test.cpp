// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/transmit_copies.h"

#include <algorithm>
#include <string_view>
#include <vector>
#include "support/bytes.h"
#include "support/catch.h"

#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::rnic;

namespace {

struct Fixture {
  explicit Fixture(std::string_view text = "0123456789") : source(test::text(text)) {}

  /// Stages the payload [offset, offset + length) of the source.
  RcFramed stage(RcFpdu& fpdu, size_t offset, size_t length, size_t burst_bytes = 1000) {
    fpdu.segment = {.offset = offset, .length = static_cast<uint32_t>(length)};
    const Sge sge{source.data(), static_cast<uint32_t>(source.size()), 0};
    return copies.stage(fpdu, {&sge, 1}, burst_bytes, counters);
  }
  /// Stages FPDUs of `length` until there is no room for one more. Returns how many bytes they had.
  size_t staged_at_most(size_t length, size_t burst_bytes) {
    source.resize(length);
    size_t bytes = 0;
    RcFpdu fpdu;
    while (stage(fpdu, 0, length, burst_bytes) == RcFramed::fpdu) bytes += length;
    return bytes;
  }
  static std::string_view text(const RcFpdu& fpdu) {
    return {reinterpret_cast<const char*>(fpdu.staged), fpdu.segment.length};
  }
  uint64_t refused() const { return counters.get(Counter::rc_tx_no_memory); }

  std::vector<std::byte> source;
  Counters counters;
  TransmitCopies copies;
};

}  // namespace

TEST_CASE("transmit copies: bytes that are staged stay as they were, until nothing is framed") {
  Fixture f;
  RcFpdu first, second;
  REQUIRE(f.stage(first, 2, 3) == RcFramed::fpdu);
  REQUIRE(f.stage(second, 5, 4) == RcFramed::fpdu);
  std::ranges::fill(f.source, std::byte{'x'});
  CHECK(f.text(first) == "234");
  CHECK(f.text(second) == "5678");
  RcFpdu next;
  f.copies.clear_staged();
  REQUIRE(f.stage(next, 0, 3) == RcFramed::fpdu);
  CHECK(next.staged == first.staged);
  CHECK(f.text(next) == "xxx");
}

TEST_CASE("transmit copies: a burst is staged, with the FPDU that reaches beyond it, and no more") {
  Fixture f;
  const auto check = [&](size_t burst_bytes, size_t staged) {
    const size_t bytes = f.staged_at_most(50000, burst_bytes);
    CHECK(bytes >= staged);
    CHECK(bytes <= staged + mpa::kMaxUlpdu);
    f.copies.clear_staged();
  };
  check(200000, 200000);
  check(4 * kStagedBurstBytes, kStagedBurstBytes);
  CHECK(f.refused() == 0);
}

TEST_CASE("transmit copies: without memory for a burst, FPDUs are staged one by one") {
  Fixture f;
  RcFpdu first, second;
  {
    const test::Starvation starvation(mpa::kMaxUlpdu);
    REQUIRE(f.stage(first, 0, 6) == RcFramed::fpdu);
    CHECK(f.text(first) == "012345");
    CHECK(f.refused() == 1);
    CHECK(f.stage(second, 6, 4) == RcFramed::no_room);
    f.copies.clear_staged();
    CHECK(f.stage(second, 6, 4) == RcFramed::fpdu);
    CHECK(f.text(second) == "6789");
    CHECK(f.refused() == 2);
  }
  f.copies.clear_staged();
  CHECK(f.stage(first, 0, 6) == RcFramed::fpdu);
  CHECK(f.stage(second, 6, 4) == RcFramed::fpdu);
  CHECK(f.refused() == 2);
}

TEST_CASE("transmit copies: without any memory nothing is staged, and that is counted once") {
  Fixture f;
  RcFpdu fpdu;
  {
    const test::Starvation starvation(1);
    CHECK(f.stage(fpdu, 0, 6) == RcFramed::no_memory);
    CHECK(f.refused() == 1);
    CHECK_FALSE(f.copies.keeps_memory());
  }
  CHECK(f.stage(fpdu, 0, 6) == RcFramed::fpdu);
  CHECK(f.text(fpdu) == "012345");
}

TEST_CASE("transmit copies: an FPDU with markers has memory, or its lack is counted") {
  Fixture f;
  REQUIRE(f.copies.reserve_marked(1000, f.counters));
  CHECK(f.copies.marked().size() >= 1000);
  const std::byte* const before = f.copies.marked().data();
  {
    const test::Starvation starvation(1);
    CHECK_FALSE(f.copies.reserve_marked(2000, f.counters));
    CHECK(f.refused() == 1);
    CHECK(f.copies.reserve_marked(500, f.counters));
    CHECK(f.copies.marked().data() == before);
  }
  CHECK(f.copies.reserve_marked(2000, f.counters));
  CHECK(f.copies.marked().size() >= 2000);
  CHECK(f.refused() == 1);
}

TEST_CASE("transmit copies: memory is freed that was not used since the last look at it") {
  const bool marked = GENERATE(true, false);
  CAPTURE(marked);
  Fixture f;
  RcFpdu fpdu;
  const auto use = [&] {
    f.copies.clear_staged();
    REQUIRE((marked ? f.copies.reserve_marked(1000, f.counters)
                    : f.stage(fpdu, 0, 6) == RcFramed::fpdu));
  };
  CHECK_FALSE(f.copies.trim(false));
  const size_t before = test::allocated_bytes();
  use();
  CHECK(f.copies.keeps_memory());
  CHECK(f.copies.trim(false));
  use();
  CHECK(f.copies.trim(false));
  CHECK(f.copies.keeps_memory());
  CHECK_FALSE(f.copies.trim(false));
  CHECK_FALSE(f.copies.keeps_memory());
  CHECK(test::allocated_bytes() == before);
}

TEST_CASE("transmit copies: memory that is in use stays, however often it is looked at") {
  Fixture f;
  RcFpdu fpdu;
  REQUIRE(f.stage(fpdu, 0, 6) == RcFramed::fpdu);
  for (int look = 0; look < 3; ++look) CHECK(f.copies.trim(true));
  CHECK(f.text(fpdu) == "012345");
  CHECK_FALSE(f.copies.trim(false));
  CHECK_FALSE(f.copies.keeps_memory());
}

TEST_CASE("transmit copies: all memory is released at once where the stream ends") {
  Fixture f;
  RcFpdu fpdu;
  const size_t before = test::allocated_bytes();
  REQUIRE(f.stage(fpdu, 0, 6) == RcFramed::fpdu);
  REQUIRE(f.copies.reserve_marked(1000, f.counters));
  f.copies.release();
  CHECK_FALSE(f.copies.keeps_memory());
  CHECK(test::allocated_bytes() == before);
}
