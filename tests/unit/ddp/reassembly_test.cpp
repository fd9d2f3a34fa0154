// SPDX-License-Identifier: Apache-2.0
#include "ddp/reassembly.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "support/catch.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

constexpr uint64_t kMost = UINT64_MAX;

Reassembly opened(uint64_t capacity) {
  Reassembly message;
  message.open(capacity);
  return message;
}

/// The same rules over one flag per byte.
struct Model {
  explicit Model(uint64_t capacity) : there(capacity, false) {}

  SegmentFault add(uint64_t offset, uint64_t count, bool last) {
    const uint64_t end = offset + count;
    if (length >= 0 && end > static_cast<uint64_t>(length)) return SegmentFault::contradiction;
    if (end > there.size()) return SegmentFault::too_long;
    const bool new_end = last && length < 0;
    if (last && !new_end && end != static_cast<uint64_t>(length)) {
      return SegmentFault::contradiction;
    }
    if (new_end && end < highest) return SegmentFault::contradiction;
    const auto present = static_cast<uint64_t>(std::count(at(offset), at(end), true));
    if (present != 0 && present != count) return SegmentFault::contradiction;
    if (present == count && count != 0 && new_end) return SegmentFault::contradiction;
    if (present == count && !new_end) return SegmentFault::duplicate;
    std::fill(at(offset), at(end), true);
    highest = std::max(highest, end);
    if (last) length = static_cast<int64_t>(end);
    return SegmentFault::none;
  }

  std::vector<bool>::iterator at(uint64_t offset) {
    return there.begin() + static_cast<std::ptrdiff_t>(offset);
  }
  uint64_t placed() const {
    return static_cast<uint64_t>(std::count(there.begin(), there.end(), true));
  }
  bool complete() const { return length >= 0 && placed() == static_cast<uint64_t>(length); }

  std::vector<bool> there;
  int64_t length = -1;
  uint64_t highest = 0;
};

}  // namespace

TEST_CASE("segments in order complete a message with the last") {
  Reassembly message = opened(100);
  CHECK(message.add(0, 40, false) == SegmentFault::none);
  CHECK(message.add(40, 40, false) == SegmentFault::none);
  CHECK_FALSE(message.complete());
  CHECK_FALSE(message.message_length());
  CHECK(message.add(80, 5, true) == SegmentFault::none);
  CHECK(message.complete());
  CHECK(message.message_length() == 85u);
  CHECK(message.placed() == 85);
}

TEST_CASE("the last segment may come first") {
  Reassembly message = opened(100);
  CHECK(message.add(80, 20, true) == SegmentFault::none);
  CHECK(message.message_length() == 100u);
  CHECK_FALSE(message.complete());
  CHECK(message.add(40, 40, false) == SegmentFault::none);
  CHECK_FALSE(message.complete());
  CHECK(message.add(0, 40, false) == SegmentFault::none);
  CHECK(message.complete());
}

TEST_CASE("a message of no bytes is complete with its one segment") {
  Reassembly message = opened(0);
  CHECK_FALSE(message.complete());
  CHECK(message.add(0, 0, true) == SegmentFault::none);
  CHECK(message.complete());
  CHECK(message.message_length() == 0u);
  CHECK(message.add(0, 0, true) == SegmentFault::duplicate);
  CHECK(message.add(0, 1, false) == SegmentFault::contradiction);
}

TEST_CASE("a segment of no bytes may bring the end") {
  Reassembly message = opened(100);
  CHECK(message.add(0, 10, false) == SegmentFault::none);
  CHECK(message.add(5, 0, false) == SegmentFault::duplicate);
  CHECK(message.add(5, 0, true) == SegmentFault::contradiction);
  CHECK(message.add(10, 0, true) == SegmentFault::none);
  CHECK(message.complete());

  Reassembly end_first = opened(100);
  CHECK(end_first.add(10, 0, true) == SegmentFault::none);
  CHECK_FALSE(end_first.complete());
  CHECK(end_first.add(0, 10, false) == SegmentFault::none);
  CHECK(end_first.complete());
}

TEST_CASE("bytes that are all there are a duplicate") {
  Reassembly message = opened(100);
  CHECK(message.add(0, 10, false) == SegmentFault::none);
  CHECK(message.add(10, 10, false) == SegmentFault::none);
  CHECK(message.add(0, 10, false) == SegmentFault::duplicate);
  CHECK(message.add(3, 10, false) == SegmentFault::duplicate);
  CHECK(message.add(0, 20, false) == SegmentFault::duplicate);
  CHECK(message.placed() == 20);
  CHECK(message.add(20, 5, true) == SegmentFault::none);
  CHECK(message.add(20, 5, true) == SegmentFault::duplicate);
  CHECK(message.complete());
}

TEST_CASE("bytes that are there in part contradict and change nothing") {
  Reassembly message = opened(100);
  CHECK(message.add(10, 10, false) == SegmentFault::none);
  CHECK(message.add(30, 10, false) == SegmentFault::none);
  CHECK(message.add(5, 10, false) == SegmentFault::contradiction);
  CHECK(message.add(15, 10, false) == SegmentFault::contradiction);
  CHECK(message.add(5, 20, false) == SegmentFault::contradiction);
  CHECK(message.add(20, 20, false) == SegmentFault::contradiction);
  CHECK(message.add(15, 20, false) == SegmentFault::contradiction);
  CHECK(message.add(39, 2, true) == SegmentFault::contradiction);
  CHECK(message.placed() == 20);
  CHECK_FALSE(message.message_length());
  CHECK(message.add(20, 10, false) == SegmentFault::none);
}

TEST_CASE("another end contradicts") {
  Reassembly message = opened(100);
  CHECK(message.add(40, 10, true) == SegmentFault::none);
  CHECK(message.add(30, 10, true) == SegmentFault::contradiction);
  CHECK(message.add(50, 10, true) == SegmentFault::contradiction);
  CHECK(message.add(20, 0, true) == SegmentFault::contradiction);
  CHECK(message.message_length() == 50u);
  CHECK(message.placed() == 10);
}

TEST_CASE("an end before bytes that came contradicts") {
  Reassembly message = opened(100);
  CHECK(message.add(50, 10, false) == SegmentFault::none);
  CHECK(message.add(40, 10, true) == SegmentFault::contradiction);
  CHECK(message.add(0, 10, true) == SegmentFault::contradiction);
  CHECK_FALSE(message.message_length());
  CHECK(message.add(60, 10, true) == SegmentFault::none);
}

TEST_CASE("the same bytes with the end only the second time contradict") {
  Reassembly message = opened(100);
  CHECK(message.add(0, 10, false) == SegmentFault::none);
  CHECK(message.add(0, 10, true) == SegmentFault::contradiction);
  CHECK_FALSE(message.complete());
}

TEST_CASE("a segment behind the end contradicts") {
  Reassembly message = opened(100);
  CHECK(message.add(40, 10, true) == SegmentFault::none);
  CHECK(message.add(50, 1, false) == SegmentFault::contradiction);
  CHECK(message.add(45, 6, false) == SegmentFault::contradiction);
  CHECK(message.add(51, 0, false) == SegmentFault::contradiction);
  CHECK(message.add(200, 10, false) == SegmentFault::contradiction);
  CHECK(message.placed() == 10);
}

TEST_CASE("a segment beyond the receive is too long") {
  Reassembly message = opened(100);
  CHECK(message.add(91, 10, true) == SegmentFault::too_long);
  CHECK(message.add(100, 1, false) == SegmentFault::too_long);
  CHECK(message.add(101, 0, true) == SegmentFault::too_long);
  CHECK(message.placed() == 0);
  CHECK_FALSE(message.message_length());
  CHECK(message.add(90, 10, true) == SegmentFault::none);
}

TEST_CASE("offsets and lengths at the end of 64 bits do not wrap") {
  Reassembly message = opened(100);
  CHECK(message.add(kMost, 1, false) == SegmentFault::too_long);
  CHECK(message.add(kMost, kMost, false) == SegmentFault::too_long);
  CHECK(message.add(1, kMost, true) == SegmentFault::too_long);
  CHECK(message.add(kMost - 9, 20, true) == SegmentFault::too_long);
  CHECK(message.add(0, 50, true) == SegmentFault::none);
  CHECK(message.add(kMost - 9, 20, true) == SegmentFault::contradiction);

  Reassembly endless = opened(kMost);
  CHECK(endless.add(kMost - 1, 1, false) == SegmentFault::none);
  CHECK(endless.add(kMost, 1, false) == SegmentFault::too_long);
  CHECK(endless.add(kMost, 0, true) == SegmentFault::none);
}

TEST_CASE("a full list of ranges refuses more disorder and never claims what was not placed") {
  Reassembly message = opened(1 << 20);
  const uint64_t limit = Reassembly::kMaxRanges;
  for (uint64_t i = 0; i < limit; ++i) {
    REQUIRE(message.add(20 * i, 10, false) == SegmentFault::none);
  }
  const uint64_t beyond = 20 * limit;
  CHECK(message.add(beyond, 10, false) == SegmentFault::range_limit);
  CHECK(message.add(beyond, 10, true) == SegmentFault::range_limit);
  CHECK(message.placed() == 10 * limit);
  CHECK_FALSE(message.message_length());

  // A refused segment may come again once a gap has closed.
  CHECK(message.add(10, 10, false) == SegmentFault::none);
  CHECK(message.add(beyond, 10, true) == SegmentFault::none);
  for (uint64_t i = 1; i < limit; ++i) {
    CHECK_FALSE(message.complete());
    REQUIRE(message.add(20 * i + 10, 10, false) == SegmentFault::none);
  }
  CHECK(message.complete());
  CHECK(message.placed() == beyond + 10);
}

TEST_CASE("opening again forgets the message and keeps its memory") {
  Reassembly message = opened(1000);
  for (uint64_t i = 0; i < 20; ++i) message.add(20 * i, 10, i == 19);
  const size_t before = test::allocations();
  message.open(500);
  const bool empty = message.placed() == 0 && !message.message_length() && !message.complete();
  bool added = true;
  for (uint64_t i = 0; i < 20; ++i) {
    added = message.add(20 * i, 10, false) == SegmentFault::none && added;
  }
  CHECK(test::allocations() == before);
  CHECK(empty);
  CHECK(added);
  CHECK(message.add(491, 10, false) == SegmentFault::too_long);

  message.open(1000);
  CHECK(message.add(0, 5, true) == SegmentFault::none);
  CHECK(message.complete());
}

TEST_CASE("segments in order allocate nothing") {
  Reassembly message;
  const size_t before = test::allocations();
  message.open(1 << 20);
  for (uint64_t i = 0; i < 700; ++i) message.add(1400 * i, 1400, i == 699);
  CHECK(test::allocations() == before);
  CHECK(message.complete());
}

TEST_CASE("reassembly equals a bitmap over random segments") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const uint64_t capacity = random.below(200);
    Reassembly message = opened(capacity);
    Model model(capacity);
    for (int step = 0; step < 300; ++step) {
      const uint64_t offset = random.below(capacity + 10);
      const uint64_t count = random.below(random.chance(0.8) ? 12 : 60);
      const bool last = random.chance(0.05);
      const SegmentFault fault = message.add(offset, count, last);
      if (fault != model.add(offset, count, last)) FAIL("seed " << seed << " step " << step);
      if (message.placed() != model.placed()) FAIL("seed " << seed << " step " << step);
      if (message.complete() != model.complete()) FAIL("seed " << seed << " step " << step);
    }
  }
}

TEST_CASE("a message in random order with duplicates completes with its last missing segment") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const uint64_t segments = 1 + random.below(200);
    Reassembly message = opened(segments * 100);
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < segments; ++i) order.push_back(i);
    for (uint64_t i = segments; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (size_t i = 0; i < order.size(); ++i) {
      if (message.complete()) FAIL("early, seed " << seed);
      const bool last = order[i] + 1 == segments;
      REQUIRE(message.add(order[i] * 100, 100, last) == SegmentFault::none);
      const uint64_t again = order[random.below(i + 1)];
      REQUIRE(message.add(again * 100, 100, again + 1 == segments) == SegmentFault::duplicate);
    }
    CHECK(message.complete());
  }
}
