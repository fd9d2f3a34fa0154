// SPDX-License-Identifier: Apache-2.0
#include "ddp/placement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "ddp/protection_context.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

constexpr uint32_t kDomain = 5;
constexpr uint64_t kBase = 1000;  // of the region's tagged offsets
constexpr Access kWritable = Access::local_write | Access::remote_write;

/// One region, the context of a queue pair in its domain, and a payload.
struct Fixture {
  STag add(size_t begin, size_t length, Access access = kWritable) {
    return table.insert({.protection_domain = kDomain,
                         .access = access,
                         .memory = memory.data() + begin,
                         .base = kBase,
                         .length = length});
  }
  Sge sge(STag lkey, size_t begin, uint32_t length) {
    return {memory.data() + begin, length, lkey};
  }
  ConstBytes payload(size_t bytes) const { return ConstBytes(sent).first(bytes); }
  /// How many bytes of the memory are not as they were.
  size_t written() const {
    return static_cast<size_t>(
        std::count_if(memory.begin(), memory.end(), [](std::byte b) { return b != std::byte{}; }));
  }
  bool has(size_t at, ConstBytes bytes) const {
    return std::equal(bytes.begin(), bytes.end(), memory.begin() + static_cast<ptrdiff_t>(at));
  }

  std::array<std::byte, 100> memory{};
  std::array<std::byte, 4> sent{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  Random random{7};
  STagTable table{[] {}, [this] { return static_cast<uint32_t>(random.next()); }};
  ProtectionContext context{table, kDomain};
};

}  // namespace

TEST_CASE("placement: a segment goes to its offset in a buffer of one element") {
  Fixture f;
  const std::array list{f.sge(f.add(0, 100), 10, 20)};
  const auto checked = f.context.check_untagged({list, 20}, 16, 4);
  REQUIRE(checked.fault == BufferFault::none);
  checked.target.place(16, f.payload(4));
  CHECK(f.has(26, f.payload(4)));
  CHECK(f.written() == 4);
}

TEST_CASE("placement: a segment may lie in several elements of a buffer") {
  Fixture f;
  const STag region = f.add(0, 100);
  const std::array list{f.sge(region, 50, 3), f.sge(region, 0, 0), f.sge(region, 20, 3)};
  const auto checked = f.context.check_untagged({list, 6}, 1, 4);
  REQUIRE(checked.fault == BufferFault::none);
  checked.target.place(1, f.payload(4));
  CHECK(f.has(51, f.payload(2)));
  CHECK(f.has(20, f.payload(4).subspan(2)));
  CHECK(f.written() == 4);
}

TEST_CASE("placement: a segment that reaches beyond an untagged buffer is found first") {
  Fixture f;
  const std::array list{f.sge(f.add(0, 100, Access::none), 0, 10)};
  CHECK(f.context.check_untagged({list, 10}, 7, 4).fault == BufferFault::too_long);
  CHECK(f.context.check_untagged({list, 10}, UINT64_MAX, 4).fault == BufferFault::too_long);
  CHECK(f.context.check_untagged({list, 10}, 11, 0).fault == BufferFault::too_long);
  CHECK(f.context.check_untagged({list, 10}, 6, 4).fault == BufferFault::protection);
}

TEST_CASE("placement: a segment may end where its buffer does, and be empty there") {
  Fixture f;
  const std::array list{f.sge(f.add(0, 10), 0, 10)};
  CHECK(f.context.check_untagged({list, 10}, 6, 4).fault == BufferFault::none);
  const auto checked = f.context.check_untagged({list, 10}, 10, 0);
  REQUIRE(checked.fault == BufferFault::none);
  checked.target.place(10, {});
  CHECK(f.written() == 0);
}

TEST_CASE("placement: a buffer of no elements takes a message of no bytes") {
  Fixture f;
  const auto checked = f.context.check_untagged({}, 0, 0);
  REQUIRE(checked.fault == BufferFault::none);
  checked.target.place(0, {});
  CHECK(f.context.check_untagged({}, 0, 1).fault == BufferFault::too_long);
}

TEST_CASE("placement: memory that may not be written is no target") {
  Fixture f;
  const STag readable = f.add(0, 10, Access::remote_read);
  const STag writable = f.add(10, 10);
  const std::array list{f.sge(writable, 10, 10), f.sge(readable, 0, 10)};
  CHECK_FALSE(f.context.target(list));
  CHECK(f.context.target(std::span(list).first(1)));
  f.table.erase(writable);
  CHECK_FALSE(f.context.target(std::span(list).first(1)));
}

TEST_CASE("placement: a tagged segment goes to its tagged offset") {
  Fixture f;
  const STag stag = f.add(30, 40);
  const auto checked = f.context.check_placement(stag, Access::remote_write, kBase + 5, 4);
  REQUIRE(checked.fault == RegionFault::none);
  REQUIRE(checked.region != nullptr);
  checked.target.place(0, f.payload(4));
  CHECK(f.has(35, f.payload(4)));
  CHECK(f.written() == 4);
}

TEST_CASE("placement: a segment goes to its place in the range of the whole message") {
  Fixture f;
  const STag stag = f.add(30, 40);
  const auto message = f.context.check_placement(stag, Access::remote_write, kBase + 5, 20);
  REQUIRE(message.fault == RegionFault::none);
  message.target.place(16, f.payload(4));
  CHECK(f.has(51, f.payload(4)));
  CHECK(f.written() == 4);
}

TEST_CASE("placement: memory that a peer may not write is no target, and its fault says why") {
  Fixture f;
  const STag stag = f.add(30, 40, Access::remote_read);
  const auto fault = [&](STag name, Access want, uint64_t offset, uint64_t length) {
    return f.context.check_placement(name, want, offset, length).fault;
  };
  CHECK(fault(stag, Access::remote_write, kBase, 4) == RegionFault::access);
  CHECK(fault(stag, Access::remote_read, kBase + 37, 4) == RegionFault::bounds);
  CHECK(fault(stag ^ 0x100, Access::remote_write, kBase, 4) == RegionFault::unknown_stag);
}

TEST_CASE("placement: the pieces of a target are those that a segment would fill") {
  Fixture f;
  const STag region = f.add(0, 100);
  const std::array list{f.sge(region, 50, 3), f.sge(region, 20, 3)};
  std::array<Bytes, 2> pieces;
  const PlacementTarget rest = f.context.target(list)->from(1);
  REQUIRE(rest.pieces(1, 3, pieces) == 2);
  CHECK(pieces[0].data() == f.memory.data() + 52);
  CHECK(pieces[0].size() == 1);
  CHECK(pieces[1].data() == f.memory.data() + 20);
  CHECK(pieces[1].size() == 2);

  const PlacementTarget one = f.context.target(std::span(list).first(1))->from(1);
  REQUIRE(one.pieces(1, 1, pieces) == 1);
  CHECK(pieces[0].data() == f.memory.data() + 52);
  CHECK(one.pieces(2, 0, pieces) == 0);
  one.place(0, f.payload(2));
  CHECK(f.has(51, f.payload(2)));
}
