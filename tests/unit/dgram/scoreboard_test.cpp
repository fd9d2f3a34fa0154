// SPDX-License-Identifier: Apache-2.0

#include "dgram/scoreboard.h"

#include <initializer_list>
#include <vector>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;

namespace {

/// Datagrams 1 to `count` are in flight, their offsets their numbers.
struct Scene {
  Time now{std::chrono::hours(1)};
  Scoreboard board;

  explicit Scene(uint32_t count) : board(1, 100) {
    for (uint32_t i = 1; i <= count; ++i) {
      REQUIRE(board.prepare());
      board.add({.message = {MessageKind::send, 7}, .offset = i}, 0, now);
    }
  }
  /// What became known to have come, in order.
  std::vector<uint32_t> acknowledge(uint64_t last, std::initializer_list<uint64_t> early = {}) {
    RdMap map;
    for (uint64_t one : early) map.set(one - last - 1);
    std::vector<uint32_t> came;
    board.acknowledge(last, 100, &map,
                      [&](uint64_t, const TxSlot& slot) { came.push_back(slot.tag.offset); });
    return came;
  }
  bool counts(uint32_t in_flight, uint32_t lost, uint32_t early) const {
    CHECK(board.window().outstanding() == in_flight + lost + early);
    return board.in_flight() == in_flight && board.lost() == lost && board.early() == early;
  }
};

}  // namespace

TEST_CASE("scoreboard: each datagram is told to have come once, by the map or for good") {
  Scene scene(6);
  CHECK(scene.acknowledge(1, {3, 5}) == std::vector<uint32_t>{1, 3, 5});
  CHECK(scene.counts(3, 0, 2));
  CHECK(scene.acknowledge(1, {3, 5}).empty());
  CHECK(scene.acknowledge(4, {5, 6}) == std::vector<uint32_t>{2, 4, 6});
  CHECK(scene.counts(0, 0, 2));
  CHECK(scene.acknowledge(6).empty());
  CHECK(scene.counts(0, 0, 0));
}

TEST_CASE("scoreboard: a lost datagram is in flight again once it was sent again") {
  Scene scene(4);
  scene.board.lose(2);
  scene.board.lose(4);
  CHECK(scene.counts(2, 2, 0));
  CHECK(scene.board.first_lost(false) == 2);
  CHECK(scene.board.next_lost(2, false) == 4);
  CHECK(scene.board.next_lost(4, false) == Scoreboard::kNone);
  CHECK(scene.board.first_lost(true) == Scoreboard::kNone);
  scene.board.resend(2, scene.now);
  CHECK(scene.counts(3, 1, 0));
  CHECK(scene.board.slot(2).has(TxSlot::repeated));
  CHECK(scene.board.slot(2).order == 5);
  CHECK(scene.acknowledge(4).size() == 4);
  CHECK(scene.counts(0, 0, 0));
}

TEST_CASE("scoreboard: the first datagram can be recalled although it came early") {
  Scene scene(3);
  scene.acknowledge(0, {1, 2});
  scene.board.recall(1);
  CHECK(scene.board.first_lost(false) == Scoreboard::kNone);
  scene.board.recall_first();
  CHECK(scene.counts(1, 1, 1));
  CHECK(scene.board.first_lost(true) == 1);
}

TEST_CASE("scoreboard: of all that is missing the first and the last are recalled") {
  Scene scene(5);
  scene.acknowledge(0, {1, 5});
  CHECK(scene.board.recall_outermost());
  CHECK(scene.board.first_lost(true) == 2);
  CHECK(scene.board.next_lost(2, true) == 4);
  scene.acknowledge(0, {1, 2, 3, 4, 5});
  CHECK_FALSE(scene.board.recall_outermost());
  CHECK(scene.counts(0, 0, 5));
}

TEST_CASE(
    "scoreboard: datagrams acknowledged for good are released in order, as skips if given up") {
  Scene scene(3);
  scene.acknowledge(2, {});
  scene.board.give_up({MessageKind::send, 7});
  for (uint32_t number : {1U, 2U}) {
    const auto released = scene.board.release();
    REQUIRE(released);
    CHECK(released->tag.offset == number);
    CHECK(released->given_up);
  }
  CHECK_FALSE(scene.board.release());
  CHECK(scene.board.is_skip(3));
  CHECK_FALSE(scene.board.has_spare_memory());
}

TEST_CASE("scoreboard: there is no place for more than the capacity") {
  Scene scene(1);
  CHECK(scene.board.prepare(SequenceWindow::kCapacity - 1));
  CHECK_FALSE(scene.board.prepare(SequenceWindow::kCapacity));
}

TEST_CASE("scoreboard: those in flight are listed in the order of their transmissions") {
  Scene scene(4);
  scene.board.lose(2);
  scene.board.resend(2, scene.now);
  std::vector<uint64_t> order;
  for (uint64_t at = scene.board.first_in_flight(); at != Scoreboard::kNone;
       at = scene.board.next_in_flight(at))
    order.push_back(at);
  CHECK(order == std::vector<uint64_t>{1, 3, 4, 2});
  scene.acknowledge(1, {3});
  CHECK(scene.board.first_in_flight() == 4);
  scene.acknowledge(4);
  CHECK(scene.board.first_in_flight() == Scoreboard::kNone);
}

TEST_CASE("scoreboard: each transmission has a cause") {
  Scene scene(4);
  CHECK(scene.board.cause(5) == TransmissionCause::first);
  scene.board.lose(2);
  CHECK(scene.board.cause(2) == TransmissionCause::lost);
  scene.board.recall(3);
  CHECK(scene.board.cause(3) == TransmissionCause::recalled);
  scene.board.recall_outermost();
  CHECK(scene.board.cause(1) == TransmissionCause::probe);
  CHECK(scene.board.cause(4) == TransmissionCause::probe);
  scene.board.resend(4, scene.now);
  scene.board.lose(4);
  CHECK(scene.board.cause(4) == TransmissionCause::lost);
}

TEST_CASE(
    "scoreboard: maps are compared by the word across the whole window, and the wrap of 16 bits") {
  Scoreboard board(uint64_t{65536} * 3 - 100, 4096);
  const uint64_t first = board.window().next();
  REQUIRE(board.prepare(4096));
  for (int i = 0; i < 4096; ++i) board.add({}, 0, Time{std::chrono::hours(1)});
  uint64_t came = 0;
  for (size_t step : {size_t{7}, size_t{3}, size_t{2}}) {
    RdMap map;
    for (size_t bit = 0; bit < 4096; bit += step) map.set(bit);
    board.acknowledge(first - 1, 4096, &map, [&](uint64_t, const TxSlot&) { ++came; });
    CHECK(board.early() == came);
    CHECK(board.in_flight() + board.early() == 4096);
  }
  // Multiples of 7, 3 or 2 below 4,096.
  uint64_t expected = 0;
  for (int i = 0; i < 4096; ++i) expected += i % 7 == 0 || i % 3 == 0 || i % 2 == 0;
  CHECK(came == expected);
}
