// SPDX-License-Identifier: Apache-2.0
#include "ddp/scatter.h"

#include <algorithm>
#include <array>
#include <span>

#include "base/random.h"
#include "support/bytes.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::ddp;
using namespace diwarp::test;

namespace {

/// Some memory and a list that names parts of it, with an empty element at each end and inside.
struct List {
  explicit List(std::initializer_list<uint32_t> lengths) {
    uint32_t begin = 0;
    for (uint32_t length : lengths) {
      sges.push_back({length != 0 ? memory.data() + begin : nullptr, length, 1});
      begin += length + 3;  // the bytes between belong to nobody
    }
  }

  /// The bytes of the list in its order.
  std::vector<std::byte> gathered() const {
    std::vector<std::byte> all;
    for (const Sge& sge : sges) {
      const auto* bytes = static_cast<const std::byte*>(sge.address);
      all.insert(all.end(), bytes, bytes + sge.length);
    }
    return all;
  }

  void count_up() {
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i);
  }

  std::vector<std::byte> memory = std::vector<std::byte>(200);
  std::vector<Sge> sges;
};

std::vector<std::byte> joined(std::span<const ConstBytes> pieces) {
  std::vector<std::byte> all;
  for (ConstBytes piece : pieces) all.insert(all.end(), piece.begin(), piece.end());
  return all;
}

}  // namespace

TEST_CASE("the length of a list is the sum of its elements without overflow") {
  CHECK(total_length({}) == 0);
  const std::array<Sge, 3> sges{Sge{nullptr, 0xFFFFFFFF, 0}, Sge{nullptr, 0, 0},
                                Sge{nullptr, 0xFFFFFFFF, 0}};
  CHECK(total_length(sges) == 2 * uint64_t{0xFFFFFFFF});
}

TEST_CASE("the pieces of a list's memory are those that bytes are scattered into") {
  for (uint64_t offset = 0; offset <= 30; ++offset) {
    for (uint64_t length = 0; offset + length <= 30; ++length) {
      List scattered({0, 10, 0, 7, 13, 0});
      List filled({0, 10, 0, 7, 13, 0});
      const std::vector<std::byte> bytes(length, std::byte{0xAB});
      scatter(scattered.sges, offset, bytes);
      std::array<Bytes, 6> pieces;
      const size_t count = pieces_of(filled.sges, offset, length, pieces);
      for (const Bytes piece : std::span(pieces).first(count)) {
        CHECK_FALSE(piece.empty());
        std::fill(piece.begin(), piece.end(), std::byte{0xAB});
      }
      CHECK(filled.memory == scattered.memory);
    }
  }
}

TEST_CASE("bytes are scattered over the elements they reach and nowhere else") {
  for (uint64_t offset = 0; offset <= 30; ++offset) {
    for (size_t count = 0; offset + count <= 30; ++count) {
      List list({0, 10, 0, 1, 12, 7, 0});
      const auto before = list.memory;
      const std::vector<std::byte> bytes(count, std::byte{0xEE});
      scatter(list.sges, offset, bytes);

      const auto all = list.gathered();
      size_t changed = 0;
      for (size_t i = 0; i < all.size(); ++i) {
        const bool inside = i >= offset && i < offset + count;
        if ((all[i] == std::byte{0xEE}) != inside) FAIL(offset << " " << count);
      }
      for (std::byte byte : list.memory) changed += byte == std::byte{0xEE};
      CHECK(changed == count);
    }
  }
}

TEST_CASE("bytes are gathered from the elements that hold them") {
  for (uint64_t offset = 0; offset <= 30; ++offset) {
    for (size_t count = 0; offset + count <= 30; ++count) {
      List list({0, 10, 0, 1, 12, 7, 0});
      list.count_up();
      std::vector<std::byte> bytes(count);
      gather(list.sges, offset, bytes);
      const auto all = list.gathered();
      const bool same = std::ranges::equal(bytes, std::span(all).subspan(offset, count));
      if (!same) FAIL(offset << " " << count);
    }
  }
}

TEST_CASE("nothing is gathered from an empty list") { gather({}, 0, {}); }

TEST_CASE("nothing is scattered over an empty list") { scatter({}, 0, {}); }

TEST_CASE("a cursor hands out the bytes of a list in pieces of any size") {
  for (uint64_t step = 1; step <= 31; ++step) {
    List list({0, 10, 0, 1, 12, 7, 0});
    list.count_up();
    SgeCursor cursor(list.sges);
    std::vector<std::byte> all;
    std::array<ConstBytes, 4> pieces;
    for (uint64_t done = 0; done < 30;) {
      const uint64_t length = std::min(step, 30 - done);
      const size_t count = cursor.take_pieces(length, pieces);
      REQUIRE(count >= 1);
      const auto part = joined(std::span(pieces).first(count));
      REQUIRE(part.size() == length);
      all.insert(all.end(), part.begin(), part.end());
      done += length;
    }
    CHECK(all == list.gathered());
  }
}

TEST_CASE("empty elements give no pieces") {
  List list({0, 10, 0, 0, 5, 0});
  SgeCursor cursor(list.sges);
  std::array<ConstBytes, 2> pieces;
  CHECK(cursor.take_pieces(15, pieces) == 2);
  CHECK(pieces[0].size() == 10);
  CHECK(pieces[1].size() == 5);
}

TEST_CASE("a cursor without room for the pieces does not move") {
  List list({10, 10, 10});
  list.count_up();
  SgeCursor cursor(list.sges);
  std::array<ConstBytes, 3> pieces;
  CHECK(cursor.take_pieces(5, pieces) == 1);
  CHECK(cursor.take_pieces(25, std::span(pieces).first(2)) == 0);
  CHECK(cursor.take_pieces(25, std::span(pieces).first(0)) == 0);
  CHECK(cursor.take_pieces(25, pieces) == 3);
  CHECK(pieces[0].data() == list.memory.data() + 5);
  CHECK(pieces[0].size() == 5);
  CHECK(pieces[2].size() == 10);
}

TEST_CASE("taking nothing gives no pieces and does not move") {
  List list({10});
  SgeCursor cursor(list.sges);
  std::array<ConstBytes, 1> pieces;
  CHECK(cursor.take_pieces(0, pieces) == 0);
  CHECK(cursor.take_pieces(10, pieces) == 1);
  CHECK(cursor.take_pieces(0, pieces) == 0);
  SgeCursor nothing;
  CHECK(nothing.take_pieces(0, pieces) == 0);
}

TEST_CASE("a cursor goes to any offset in any direction") {
  List list({0, 10, 0, 1, 12, 7, 0});
  list.count_up();
  const auto all = list.gathered();
  SgeCursor cursor(list.sges);
  Random random(3);
  std::array<ConstBytes, 8> pieces;
  for (int round = 0; round < 2000; ++round) {
    const uint64_t offset = random.below(31);
    cursor.seek(offset);
    const uint64_t length = random.below(31 - offset);
    const size_t count = cursor.take_pieces(length, pieces);
    const auto part = joined(std::span(pieces).first(count));
    const auto expected = copy(ConstBytes(all).subspan(offset, length));
    REQUIRE(part == expected);
    if (random.chance(0.5)) cursor.seek(offset + length);  // where it is already
  }
}
