// SPDX-License-Identifier: Apache-2.0
#include "dgram/reorder_buffer.h"

#include <array>
#include <span>
#include <utility>
#include <vector>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;

TEST_CASE("rd buffer: one address gets half of it, and leaves the rest to others") {
  constexpr size_t kPlaces = 16;  // of the usual size
  ReorderBuffer buffer(kPlaces * 2048);
  const std::array<std::byte, 100> bytes{};
  BufferShare greedy;
  BufferShare honest;
  std::vector<BufferedDatagram*> kept;
  while (auto* const one = buffer.keep(RdKind::data, 0, bytes, greedy)) kept.push_back(one);
  CHECK(kept.size() == kPlaces / 2);
  CHECK(buffer.room(greedy) == 0);
  CHECK_FALSE(buffer.take_bytes(1, greedy));
  CHECK(buffer.room(honest) == kPlaces / 2);
  REQUIRE(buffer.take_bytes(2048, honest));
  CHECK(buffer.room(honest) == kPlaces / 2 - 1);
  buffer.give_back_bytes(2048, honest);
  for (BufferedDatagram* const one : kept) buffer.release(one, greedy);
  CHECK(buffer.used() == 0);
  CHECK(greedy.used == 0);
  CHECK(buffer.room(greedy) == kPlaces / 2);
}

TEST_CASE("rd buffer: places that are free count to the bound until they are given back") {
  constexpr size_t kBound = 64 << 10;
  ReorderBuffer buffer(kBound);
  BufferShare share;
  std::vector<BufferedDatagram*> kept;
  const std::vector<std::byte> bytes(16 << 10);
  const auto keep_all = [&](size_t size) {
    while (auto* const one = buffer.keep(RdKind::data, 0, std::span(bytes).first(size), share))
      kept.push_back(one);
  };
  const auto release_all = [&] {
    for (BufferedDatagram* const one : kept) buffer.release(one, share);
    kept.clear();
  };
  keep_all(100);
  release_all();
  CHECK(buffer.memory() == kBound / 2);
  keep_all(bytes.size());
  CHECK(buffer.used() == kBound / 2);
  CHECK(buffer.memory() <= kBound);
  BufferShare other;
  CHECK(buffer.take_bytes(kBound / 2, other));
  CHECK(buffer.memory() <= kBound);
  buffer.give_back_bytes(kBound / 2, other);
  release_all();
  buffer.shrink();
  CHECK(buffer.memory() == 0);
}

TEST_CASE("rd buffer: a long datagram takes the memory of free places where no other is left") {
  constexpr size_t kBound = 64 << 10;
  ReorderBuffer buffer(kBound);
  std::array<BufferShare, 2> shares;  // half of the bound each
  std::vector<std::pair<BufferedDatagram*, BufferShare*>> kept;
  const std::vector<std::byte> bytes(16 << 10);
  for (BufferShare& share : shares)
    while (auto* const one = buffer.keep(RdKind::data, 0, std::span(bytes).first(100), share))
      kept.emplace_back(one, &share);
  for (const auto& [one, share] : kept) buffer.release(one, *share);
  REQUIRE(buffer.used() == 0);
  REQUIRE(buffer.memory() == kBound);
  BufferedDatagram* const one = buffer.keep(RdKind::data, 0, bytes, shares[0]);
  REQUIRE(one != nullptr);
  CHECK(buffer.memory() == kBound);
  buffer.release(one, shares[0]);
}

TEST_CASE("rd buffer: long datagrams make the window of their own address smaller, for a while") {
  ReorderBuffer buffer(64 << 10);
  const std::vector<std::byte> bytes(16 << 10);
  BufferShare jumbo;
  const BufferShare usual;
  BufferedDatagram* const kept = buffer.keep(RdKind::data, 0, bytes, jumbo);
  REQUIRE(kept != nullptr);
  CHECK(buffer.room(jumbo) == 1);
  CHECK(buffer.room(usual) == 16);
  buffer.release(kept, jumbo);
  CHECK(buffer.room(jumbo) == 16);
}
