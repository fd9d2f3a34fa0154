// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_direct_placement.h"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>
#include "support/catch.h"

#include "parts.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

constexpr size_t kHeader = 14;  // of a tagged segment (RFC 5041 figure 3)
constexpr size_t kLength = 2;   // of an FPDU's length (RFC 5044 section 4)
constexpr size_t kTrailer = 4 + 2;

/// A Write of 100 bytes, of which 6 came with the header, into 60 bytes of memory and 40 elsewhere.
/// Padding and CRC are 6 bytes.
struct Fixture : Memory {
  Fixture() {
    std::ranges::generate(ulpdu, [n = 0]() mutable { return static_cast<std::byte>(n++); });
    direct.begin({.ulpdu = ulpdu, .missing = 94, .trailer = kTrailer},
                 {.opcode = rdmap::Opcode::rdma_write, .missing = 100}, 6, false);
  }

  struct Piece {
    std::byte* begin;
    size_t size;
    friend bool operator==(const Piece&, const Piece&) = default;
  };
  using PieceList = std::vector<Piece>;
  /// Where the next read goes.
  PieceList room() {
    RcDirectPlacement::Pieces pieces;
    const size_t count = direct.room(*protection.target(sges), buffer, pieces);
    PieceList all;
    for (size_t i = 0; i < count; ++i) all.push_back({pieces[i].data(), pieces[i].size()});
    return all;
  }
  std::optional<ConstBytes> add(size_t came) { return direct.add(came, buffer); }

  std::array<std::byte, kHeader + 6> ulpdu;
  std::array<std::byte, 64> buffer;
  STag region = add_region();
  std::array<Sge, 2> sges{sge(region, 0, 60), sge(region, 100, 40)};
  RcDirectPlacement direct;

 private:
  STag add_region() { return Memory::add(0, Canvas::kSize); }
};

}  // namespace

TEST_CASE(
    "rc direct placement: the rest of the payload is read into its memory, then what follows") {
  Fixture f;
  CHECK(f.direct.under_way());
  CHECK(f.room() == Fixture::PieceList{{f.canvas.at(6), 54},
                                       {f.canvas.at(100), 40},
                                       {f.buffer.data(), kTrailer + kLength + kHeader}});
}

TEST_CASE("rc direct placement: a read that brings a part of the payload is gone on from there") {
  Fixture f;
  CHECK_FALSE(f.add(54));
  CHECK(f.room() == Fixture::PieceList{{f.canvas.at(100), 40},
                                       {f.buffer.data(), kTrailer + kLength + kHeader}});
  CHECK_FALSE(f.add(39));
  CHECK(f.room() ==
        Fixture::PieceList{{f.canvas.at(139), 1}, {f.buffer.data(), kTrailer + kLength + kHeader}});
}

TEST_CASE("rc direct placement: it is whole with the last byte of its trailer") {
  Fixture f;
  CHECK_FALSE(f.add(94));
  CHECK_FALSE(f.add(kTrailer - 1));
  CHECK(f.room() == Fixture::PieceList{{f.buffer.data(), 1 + kLength + kHeader}});
  const auto rest = f.add(1);
  REQUIRE(rest);
  CHECK(rest->empty());
}

TEST_CASE("rc direct placement: bytes after the trailer are those that follow the FPDU") {
  Fixture f;
  const auto rest = f.add(94 + kTrailer + 5);
  REQUIRE(rest);
  CHECK(rest->data() == f.buffer.data() + kTrailer);
  CHECK(rest->size() == 5);
}

TEST_CASE(
    "rc direct placement: of a trailer that comes in two reads the second has the bytes after") {
  Fixture f;
  CHECK_FALSE(f.add(94 + 2));
  const auto rest = f.add(kTrailer - 2 + 7);
  REQUIRE(rest);
  CHECK(rest->data() == f.buffer.data() + kTrailer - 2);
  CHECK(rest->size() == 7);
}

TEST_CASE("rc direct placement: the header is kept, and the length of all of the ULPDU") {
  Fixture f;
  CHECK(std::ranges::equal(f.direct.header(), ConstBytes(f.ulpdu).first(kHeader)));
  CHECK(f.direct.ulpdu_bytes() == kHeader + 100);
  CHECK_FALSE(f.direct.took_receive());
  f.ulpdu.fill(std::byte{0xFF});  // the engine's buffer is used again
  CHECK(f.direct.header()[1] == std::byte{1});
  f.direct.end();
  CHECK_FALSE(f.direct.under_way());
  CHECK(f.direct.ulpdu_bytes() == kHeader + 100);  // until the next one
}

TEST_CASE("rc direct placement: nothing of one FPDU stays for the next") {
  Fixture f;
  REQUIRE(f.add(94 + kTrailer));
  f.direct.end();
  std::array<std::byte, 18> header{};
  f.direct.begin({.ulpdu = header, .missing = 60, .trailer = 4},
                 {.opcode = rdmap::Opcode::send, .missing = 60}, 0, true);
  CHECK(f.direct.under_way());
  CHECK(f.direct.took_receive());
  CHECK(f.direct.header().size() == 18);
  CHECK(f.direct.ulpdu_bytes() == 78);
  CHECK(f.room() == Fixture::PieceList{{f.canvas.at(0), 60}, {f.buffer.data(), 4 + kLength + 18}});
}
