// SPDX-License-Identifier: Apache-2.0

#include "dgram/sender.h"
#include "base/random.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using News = Sender::News;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr Duration kLongest = seconds(1);

/// A part of message 7 by default.
TxTag part(uint32_t offset, uint32_t message = 7) {
  return {.message = {MessageKind::send, message}, .offset = offset};
}

struct Scene {
  Time now{std::chrono::hours(1)};
  Sender sender;

  explicit Scene(uint16_t window = 100, CongestionControl control = CongestionControl::cubic)
      : sender(1, window, control) {}
  void send(uint32_t count) {
    for (uint32_t i = 0; i < count; ++i)
      sender.sent(part(static_cast<uint32_t>(sender.window().next())), now);
  }
  News ack(uint32_t number, uint16_t window = 100) {
    now += microseconds(100);
    return sender.acknowledged(number, window, nullptr, now);
  }
  News ack_map(uint32_t number, std::initializer_list<uint32_t> early) {
    RdMap map;
    for (uint32_t one : early) map.set(one - number - 1);
    now += microseconds(100);
    return sender.acknowledged(number, 100, &map, now);
  }
  uint32_t released() {
    uint32_t count = 0;
    while (sender.scoreboard().release()) ++count;
    return count;
  }
};

}  // namespace

TEST_CASE("rd sender: no window, no datagram") {
  Scene scene(0);
  CHECK_FALSE(scene.sender.may_send());
  CHECK(scene.ack(0, 3) == News::stale);
  CHECK(scene.sender.may_send(2));
  CHECK_FALSE(scene.sender.may_send(3));
}

TEST_CASE("rd sender: ten datagrams go at first, and two more for each that came") {
  Scene scene;
  CHECK(scene.sender.may_send(9));
  CHECK_FALSE(scene.sender.may_send(10));
  scene.send(10);
  CHECK_FALSE(scene.sender.may_send());
  CHECK(scene.ack(4) == News::progress);
  CHECK(scene.sender.may_send(7));
  CHECK_FALSE(scene.sender.may_send(8));
  CHECK(scene.released() == 4);
}

TEST_CASE("rd sender: an acknowledgement of what was never sent is invalid") {
  Scene scene;
  scene.send(5);
  CHECK(scene.ack(6) == News::invalid_ack);
  CHECK(scene.ack(1000000) == News::invalid_ack);
  CHECK(scene.ack_map(0, {6}) == News::invalid_ack);
  CHECK(scene.ack_map(5, {6}) == News::invalid_ack);
  CHECK(scene.released() == 0);
  CHECK(scene.ack(5) == News::progress);
  CHECK(scene.ack(6) == News::invalid_ack);
  CHECK(scene.sender.window().idle());
}

TEST_CASE(
    "rd sender: a map of zeros says nothing, whether there is memory of what was sent or not") {
  Scene scene;
  const auto zeros = [&](uint32_t number, size_t words) {
    RdMap map;
    while (map.count < words) map.words[map.count++] = 0;
    return scene.sender.acknowledged(number, 100, &map, scene.now);
  };
  for (const size_t words : {size_t{1}, kRdMapWords}) CHECK(zeros(0, words) == News::stale);
  scene.send(3);
  CHECK(scene.ack(1) == News::progress);
  for (const size_t words : {size_t{1}, kRdMapWords}) CHECK(zeros(1, words) == News::stale);
  CHECK(scene.ack(3) == News::progress);
  CHECK(scene.released() == 3);
  scene.sender.scoreboard().release_memory();
  for (const size_t words : {size_t{1}, kRdMapWords}) CHECK(zeros(3, words) == News::stale);
}

TEST_CASE("rd sender: the application or the peer's window limits it, unless congestion does") {
  constexpr uint32_t kInitial = CongestionController::kInitialWindow;
  const auto limited = [](uint16_t window, uint32_t count, bool more) {
    Scene scene(window, CongestionControl::bbr);
    scene.sender.begin_burst(scene.now);
    scene.send(count);
    scene.sender.end_burst(0, 0, more);
    scene.ack(1, static_cast<uint16_t>(window - 1));
    scene.send(1);
    return scene.sender.scoreboard().slot(count + 1).has(TxSlot::app_limited);
  };
  CHECK(limited(100, 5, false));
  CHECK_FALSE(limited(100, 5, true));
  CHECK(limited(5, 5, true));
  CHECK_FALSE(limited(kInitial, kInitial, true));
  // Of what was decided on and not sent yet, new datagrams alone need the peer's window.
  Scene scene(5, CongestionControl::bbr);
  scene.sender.begin_burst(scene.now);
  scene.sender.end_burst(4, 1, true);
  scene.send(1);
  CHECK_FALSE(scene.sender.scoreboard().slot(1).has(TxSlot::app_limited));
  scene.sender.begin_burst(scene.now);
  scene.sender.end_burst(4, 1, true);
  scene.send(1);
  CHECK(scene.sender.scoreboard().slot(2).has(TxSlot::app_limited));
}

TEST_CASE("rd sender: old acknowledgements change nothing") {
  Scene scene;
  scene.send(5);
  CHECK(scene.ack(3) == News::progress);
  CHECK(scene.ack(2, 65535) == News::stale);
  CHECK(scene.ack(3) == News::stale);
  CHECK(scene.ack(0x80000003) == News::stale);
  CHECK(scene.sender.window().outstanding() == 2);
}

TEST_CASE("rd sender: a window that shrinks takes nothing back") {
  Scene scene;
  scene.send(5);
  CHECK(scene.ack(5, 50) == News::progress);
  CHECK(scene.ack(5, 0) == News::stale);
  CHECK(scene.sender.window().is_open());
  CHECK(scene.sender.may_send(10));
}

TEST_CASE("rd sender: the third that came after it shows a datagram lost") {
  Scene scene;
  scene.send(8);
  CHECK(scene.ack_map(0, {2, 3}) == News::progress);
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
  CHECK(scene.ack_map(0, {2, 3, 4}) == News::progress);
  REQUIRE(scene.sender.first_lost() == 1);
  CHECK(scene.sender.scoreboard().tag(1).offset == 1);
  scene.sender.resent(1, scene.now);
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
  CHECK(scene.sender.congestion().window() == 9);  // 13 * 0.7
  CHECK(scene.ack(8) == News::progress);
  CHECK(scene.released() == 8);
  CHECK(scene.sender.retransmitted() == 1);
}

TEST_CASE("rd sender: a lost retransmission is seen by what was sent after it") {
  Scene scene;
  scene.send(8);
  scene.ack_map(0, {2, 3, 4});
  scene.sender.resent(1, scene.now);
  scene.send(4);  // 9 to 12
  scene.ack_map(0, {2, 3, 4, 5, 6, 7, 8});
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
  scene.ack_map(0, {2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  CHECK(scene.sender.first_lost() == 1);
}

TEST_CASE("rd sender: one that comes after it was sent again has nothing else taken for lost") {
  constexpr Duration kRoundTrip = milliseconds(10);
  Scene scene(100, CongestionControl::bbr);
  const auto ack_map = [&](uint32_t number, uint32_t from, uint32_t to) {
    RdMap map;
    for (uint32_t one = from; one <= to; ++one) map.set(one - number - 1);
    return scene.sender.acknowledged(number, 100, &map, scene.now);
  };
  scene.send(1);
  scene.now += kRoundTrip;
  scene.sender.acknowledged(1, 100, nullptr, scene.now);
  scene.send(5);  // 2 to 6, of which 2 is late
  scene.now += kRoundTrip;
  ack_map(1, 3, 6);
  REQUIRE(scene.sender.first_lost() == 2);
  scene.send(3);  // 7 to 9
  scene.now += milliseconds(1);
  scene.sender.resent(2, scene.now);
  scene.now += kRoundTrip * 7 / 10;
  ack_map(6, 7, 6);
  scene.now += milliseconds(1);
  if (scene.sender.deadline(false, kLongest) <= scene.now)
    scene.sender.on_deadline(scene.now, false, kLongest);
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
  scene.now += kRoundTrip;
  CHECK(scene.ack(9) == News::progress);
  CHECK(scene.sender.retransmitted() == 1);
}

TEST_CASE("rd sender: before a round trip is measured nothing tells that an earlier one came") {
  Scene scene;
  scene.send(3);
  REQUIRE_FALSE(scene.sender.round_trip().measured());
  for (uint32_t i = 1; i <= 3; ++i) {
    scene.sender.scoreboard().recall(i);
    scene.sender.resent(i, scene.now);
  }
  CHECK(scene.ack(1) == News::progress);
  CHECK_FALSE(scene.sender.round_trip().measured());
  scene.send(4);
  CHECK(scene.ack_map(3, {5, 6, 7}) == News::progress);
  CHECK(scene.sender.first_lost() == 4);  // the network was not seen to reorder
}

TEST_CASE("rd sender: many losses of one window reduce it once") {
  Scene scene;
  scene.send(10);
  scene.ack_map(0, {4, 5, 6, 7, 8, 9});
  uint32_t lost = 0;
  for (uint64_t at = scene.sender.first_lost(); at != Scoreboard::kNone;
       at = scene.sender.next_lost(at, 0))
    ++lost;
  CHECK(lost == 3);
  const uint32_t window = scene.sender.congestion().window();
  CHECK(window >= 7);
  scene.ack_map(0, {4, 5, 6, 7, 8, 9, 10});
  CHECK(scene.sender.congestion().window() == window);
}

TEST_CASE("rd sender: a while after a later one came a datagram is lost") {
  Scene scene;
  scene.send(2);
  scene.ack_map(0, {2});
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
  const auto due = scene.sender.deadline(false, kLongest);
  REQUIRE(due);
  CHECK(*due - scene.now < milliseconds(2));
  CHECK_FALSE(scene.sender.on_deadline(*due, false, kLongest));
  CHECK(scene.sender.first_lost() == 1);
}

TEST_CASE("rd sender: silence has the first and the last missing datagram sent again") {
  Scene scene;
  scene.send(5);
  const auto due = scene.sender.deadline(false, kLongest);
  REQUIRE(due);
  CHECK_FALSE(scene.sender.on_deadline(*due - Duration(1), false, kLongest));
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
  CHECK_FALSE(scene.sender.on_deadline(*due, false, kLongest));
  CHECK(scene.sender.first_lost() == 1);
  CHECK(scene.sender.next_lost(1, 0) == 5);
  scene.sender.resent(1, *due);
  scene.sender.resent(5, *due);
  const auto next = scene.sender.deadline(false, kLongest);
  REQUIRE(next);
  CHECK(*next - *due == 2 * (*due - scene.now));  // twice as long
}

TEST_CASE("rd sender: with nothing under way there is no deadline unless something is wanted") {
  Scene scene;
  CHECK_FALSE(scene.sender.deadline(false, kLongest));
  scene.sender.timer().heard(scene.now);
  const auto due = scene.sender.deadline(true, kLongest);
  REQUIRE(due);
  CHECK(scene.sender.on_deadline(*due, true, kLongest));
}

TEST_CASE("rd sender: an idle sender probes ever more rarely while only answers to probes come") {
  Scene scene;
  scene.send(1);
  scene.ack(1);
  Time now = scene.now;
  size_t probes = 0;
  const auto wait = [&](Duration time) {
    const Time end = now + time;
    for (probes = 0;; ++probes) {
      const auto due = scene.sender.deadline(true, kLongest);
      REQUIRE(due);
      if (*due > end) break;
      now = *due;
      REQUIRE(scene.sender.on_deadline(now, true, kLongest));
      scene.sender.timer().heard(now);
    }
    now = end;
  };
  scene.sender.timer().heard(now);
  wait(100 * kLongest);
  CHECK(probes > 90);
  CHECK(probes < 120);
  SECTION("something new of the peer makes them frequent again") {
    scene.sender.peer_advanced();
    scene.sender.timer().heard(now);
    const auto due = scene.sender.deadline(true, kLongest);
    REQUIRE(due);
    CHECK(*due - now == scene.sender.round_trip().timeout());
  }
  SECTION("what is sent next is sent again as early as ever") {
    scene.now = now;
    scene.send(1);
    const auto due = scene.sender.deadline(true, kLongest);
    REQUIRE(due);
    CHECK(*due - now == scene.sender.round_trip().timeout());
  }
}

TEST_CASE("rd sender: where all has come early, it probes") {
  Scene scene;
  scene.send(3);
  scene.ack_map(0, {1, 2, 3});
  const auto due = scene.sender.deadline(false, kLongest);
  REQUIRE(due);
  CHECK(scene.sender.on_deadline(*due, false, kLongest));
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
}

TEST_CASE("rd sender: recalled datagrams go whatever the window says, but not those that came") {
  Scene scene;
  scene.send(10);
  scene.ack_map(0, {2});
  scene.sender.scoreboard().recall(2);
  CHECK(scene.sender.first_lost() == Scoreboard::kNone);
  scene.sender.scoreboard().recall(1);
  scene.sender.scoreboard().recall(1);
  CHECK(scene.sender.first_lost() == 1);
  scene.sender.scoreboard().recall(11);
  CHECK(scene.sender.next_lost(1, 0) == Scoreboard::kNone);
  scene.sender.resent(1, scene.now);
  CHECK(scene.ack(10) == News::progress);
}

TEST_CASE("rd sender: random acknowledgements never release what was not sent") {
  Random random(23);
  Scene scene;
  uint64_t released = 0;
  for (int round = 0; round < 20000; ++round) {
    if (scene.sender.may_send()) scene.send(static_cast<uint32_t>(1 + random.below(3)));
    RdMap map;
    for (uint64_t bits = random.below(20); bits != 0; --bits) map.set(random.below(40));
    const auto number =
        static_cast<uint32_t>(scene.sender.window().first_unacknowledged() + random.below(12) - 6);
    scene.now += microseconds(random.below(5000));
    scene.sender.acknowledged(number, static_cast<uint16_t>(random.below(65536)), &map, scene.now);
    released += scene.released();
    REQUIRE(released == scene.sender.window().first_unacknowledged() - 1);
    REQUIRE(scene.sender.window().first_unacknowledged() <= scene.sender.window().next());
    REQUIRE(scene.sender.scoreboard().in_flight() <= scene.sender.window().outstanding());
    scene.sender.on_deadline(scene.now, false, kLongest);
    for (uint64_t at = scene.sender.first_lost(); at != Scoreboard::kNone;
         at = scene.sender.first_lost())
      scene.sender.resent(at, scene.now);
  }
  CHECK(released > 1000);
}

TEST_CASE("rd sender: memory is given back when all is done") {
  Scene scene;
  scene.send(3);
  scene.sender.scoreboard().release_memory();  // too early: nothing happens
  CHECK(scene.sender.scoreboard().tag(2).offset == 2);
  scene.ack(3);
  CHECK(scene.released() == 3);
  scene.sender.scoreboard().release_memory();
  scene.send(1);
  CHECK(scene.ack(4) == News::progress);
}

TEST_CASE("rd sender: skips stand for a message that was given up, and for no other") {
  Scene scene;
  scene.sender.sent(part(0, 1), scene.now);
  scene.sender.sent(part(0, 2), scene.now);
  scene.sender.sent(part(9, 1), scene.now);
  scene.sender.sent({.message = {MessageKind::write_record, 1}}, scene.now);
  scene.sender.scoreboard().give_up({MessageKind::send, 1});
  CHECK(scene.sender.scoreboard().is_skip(1));
  CHECK_FALSE(scene.sender.scoreboard().is_skip(2));
  CHECK(scene.sender.scoreboard().is_skip(3));
  CHECK_FALSE(scene.sender.scoreboard().is_skip(4));
  CHECK(scene.sender.scoreboard().tag(3).message == MessageName{MessageKind::send, 1});
}

TEST_CASE("rd sender: a skip stays one when it is lost, sent again or came early") {
  Scene scene;
  scene.send(5);
  scene.sender.scoreboard().give_up({MessageKind::send, 7});
  scene.ack_map(0, {2, 3, 4});
  REQUIRE(scene.sender.first_lost() == 1);
  scene.sender.resent(1, scene.now);
  CHECK(scene.sender.scoreboard().is_skip(1));
  CHECK(scene.sender.scoreboard().is_skip(2));
  scene.ack(5);
  int skips = 0;
  while (const auto released = scene.sender.scoreboard().release())
    skips += released->given_up ? 1 : 0;
  CHECK(skips == 5);
}

TEST_CASE("rd sender: a message that is given up before its end is closed by a fresh skip") {
  Scene scene;
  scene.send(1);
  scene.ack(1);
  CHECK(scene.released() == 1);
  scene.sender.sent_skip({.message = {MessageKind::send, 7}}, scene.now);
  CHECK(scene.sender.scoreboard().is_skip(2));
  scene.sender.sent(part(0, 8), scene.now);
  CHECK_FALSE(scene.sender.scoreboard().is_skip(3));
}

TEST_CASE("rd sender: a failure stands, although the response that it ends was given up") {
  Scene scene;
  const MessageName response{MessageKind::read_response, 5};
  scene.sender.sent({.message = response}, scene.now);
  scene.sender.sent({.message = response, .failure = true}, scene.now);
  scene.sender.scoreboard().give_up(response);
  CHECK(scene.sender.scoreboard().is_skip(1));
  CHECK_FALSE(scene.sender.scoreboard().is_skip(2));
}

TEST_CASE("rd sender: a reset must repeat a number that was sent, or one that a probe named") {
  Sender sender(uint64_t{1} << 32 | 1000, 100);
  CHECK(sender.window().was_sent(999));
  CHECK_FALSE(sender.window().was_sent(1000));
  for (uint32_t i = 0; i < 3; ++i) sender.sent(part(i), Time{std::chrono::hours(1)});
  CHECK(sender.window().was_sent(1002));
  CHECK_FALSE(sender.window().was_sent(1003));
  CHECK_FALSE(sender.window().was_sent(0x80000000));
  CHECK_FALSE(sender.window().was_sent(1000 - 5000U));
}

TEST_CASE("rd sender: of all numbers a reset can repeat 4,096 are right, and those outstanding") {
  constexpr uint32_t kOutstanding = 10;
  Scene scene;
  for (int i = 0; i < 900; ++i) {
    scene.send(10);
    scene.ack(static_cast<uint32_t>(scene.sender.window().next() - 1));
    scene.released();
  }
  const auto right = [&scene] {
    uint64_t count = 0;
    for (uint32_t number = 0; number < 1 << 20; ++number)
      count += scene.sender.window().was_sent(number);
    return count;
  };
  CHECK(right() == 4096);
  scene.send(kOutstanding);
  CHECK(right() == 4096 + kOutstanding);
}

TEST_CASE("rd sender: memory beyond the first datagrams counts to a budget, and is given back") {
  MemoryBudget budget((sizeof(TxSlot) + 1) * 128);
  Sender first, second;
  REQUIRE(first.scoreboard().prepare(TransmitRing::kUncounted, &budget));
  CHECK(budget.used() == 0);
  REQUIRE(first.scoreboard().prepare(100, &budget));
  CHECK(budget.used() > 0);
  CHECK_FALSE(second.scoreboard().prepare(100, &budget));
  CHECK(second.scoreboard().prepare(TransmitRing::kUncounted, &budget));
  SECTION("when it is released") { first.scoreboard().release_memory(); }
  SECTION("when another sender takes its place") { first = Sender(); }
  SECTION("when what it was moved to goes") {
    const Sender moved = std::move(first);
    CHECK(budget.used() > 0);
  }
  CHECK(budget.used() == 0);
  CHECK(second.scoreboard().prepare(100, &budget));
}
