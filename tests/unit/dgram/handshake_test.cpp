// SPDX-License-Identifier: Apache-2.0

#include "dgram/handshake.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::dgram;
using Verdict = Handshake::Verdict;
using OpenVerdict = Handshake::OpenVerdict;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uint32_t kHere = 0x1111;  // incarnations
constexpr uint32_t kThere = 0x2222;
constexpr uint64_t kNonce = 0x0123456789ABCDEF;
const Time kNow{std::chrono::hours(1)};

RdHeader names(RdKind kind, uint32_t epoch, uint32_t peer_epoch, uint32_t peer_incarnation) {
  return {
      .kind = kind, .epoch = epoch, .peer_epoch = peer_epoch, .peer_incarnation = peer_incarnation};
}

/// Established, 7 here and 9 there.
Handshake established() {
  Handshake association;
  association.establish(7, kThere, {.epoch = 9});
  return association;
}

}  // namespace

TEST_CASE("rd association: opener and other agree in four steps") {
  Handshake opener;
  Handshake other;
  opener.open(7, kNonce, kNow);
  CHECK(opener.proof().cookie == Cookie{});
  const Cookie cookie{std::byte{5}};
  REQUIRE(opener.challenged(kThere, {kNonce, cookie}, kNow));
  CHECK(opener.proof().cookie == cookie);
  RdHeader open = opener.header(RdKind::open);
  CHECK(open.peer_epoch == 0);
  CHECK(open.peer_incarnation == kThere);
  REQUIRE(other.check_open(open, kHere) == OpenVerdict::joins);
  other.establish(9, kHere, open);
  const RdHeader answer = other.header(RdKind::acknowledgement);
  CHECK(answer.peer_incarnation == kHere);
  CHECK(opener.check(answer, kThere, kHere) == Verdict::accepted);
  CHECK(opener.acceptance_time(kNow + milliseconds(3)) == milliseconds(3));
  CHECK(opener.check(answer, kThere, kHere) == Verdict::ours);
  CHECK(other.check(opener.header(RdKind::data), kHere, kThere) == Verdict::ours);
  CHECK(other.check_open(open, kHere) == OpenVerdict::again);
}

TEST_CASE("rd association: two that open at once keep the epochs they drew") {
  Handshake a;
  Handshake b;
  a.open(7, kNonce, kNow);
  b.open(9, kNonce, kNow);
  REQUIRE(a.challenged(kThere, {kNonce, {}}, kNow));
  REQUIRE(b.challenged(kHere, {kNonce, {}}, kNow));
  const RdHeader open_a = a.header(RdKind::open);
  const RdHeader open_b = b.header(RdKind::open);
  REQUIRE(a.check_open(open_b, kThere) == OpenVerdict::joins);
  a.establish(100, kThere, open_b);
  REQUIRE(b.check_open(open_a, kHere) == OpenVerdict::joins);
  b.establish(100, kHere, open_a);
  CHECK(a.epoch() == 7);
  CHECK(b.epoch() == 9);
  CHECK(a.check(b.header(RdKind::data), kThere, kHere) == Verdict::ours);
  CHECK(b.check(a.header(RdKind::data), kHere, kThere) == Verdict::ours);
}

TEST_CASE("rd association: each side begins with the number that the other one expects") {
  const Handshake here = established();
  Handshake there;
  there.establish(9, kHere, {.epoch = 7});
  CHECK(here.first_sent(kHere) == there.first_received(kThere));
  CHECK(here.first_received(kHere) == there.first_sent(kThere));
  CHECK(here.first_sent(kHere) != here.first_received(kHere));
  CHECK(here.first_sent(kHere) == (uint64_t{1} << 32) + first_sequence({kHere, 7}, {kThere, 9}));
}

TEST_CASE("rd association: any wrong name makes a datagram unknown") {
  Handshake association = established();
  CHECK(association.check(names(RdKind::data, 9, 7, kHere), kThere, kHere) == Verdict::ours);
  CHECK(association.check(names(RdKind::data, 10, 7, kHere), kThere, kHere) == Verdict::unknown);
  CHECK(association.check(names(RdKind::data, 9, 8, kHere), kThere, kHere) == Verdict::unknown);
  CHECK(association.check(names(RdKind::data, 9, 7, kHere + 1), kThere, kHere) == Verdict::unknown);
  CHECK(association.check(names(RdKind::data, 9, 7, kHere), kThere + 1, kHere) == Verdict::unknown);
  CHECK(association.check(names(RdKind::data, 8, 6, kHere), kThere, kHere) == Verdict::stale);
  CHECK(association.check(names(RdKind::probe, 8, 6, kHere + 1), kThere, kHere) ==
        Verdict::unknown);
  CHECK(association.check(names(RdKind::acknowledgement, 9, 8, kHere), kThere, kHere) ==
        Verdict::stale);
  CHECK(association.check(names(RdKind::refusal, 9, 8, kHere), kThere, kHere) == Verdict::stale);
  CHECK(association.check(names(RdKind::probe, 9, 8, kHere), kThere, kHere) == Verdict::unknown);
  CHECK(association.check(names(RdKind::skip, 9, 8, kHere), kThere, kHere) == Verdict::unknown);
  Handshake closed;
  CHECK(closed.check(names(RdKind::data, 9, 0, kHere), kThere, kHere) == Verdict::unknown);
}

TEST_CASE("rd association: a reset must know all names, but may come from a new incarnation") {
  Handshake association = established();
  const RdHeader offending = association.header(RdKind::data);
  const RdHeader reset = rd_reset_for(offending, kHere);
  CHECK(association.check(reset, kThere, kHere) == Verdict::ended);
  CHECK(association.check(reset, kThere + 5, kHere) == Verdict::ended);
  for (const RdHeader& wrong :
       {names(RdKind::reset, 8, 7, kHere), names(RdKind::reset, 9, 8, kHere),
        names(RdKind::reset, 9, 7, kHere + 1)})
    CHECK(association.check(wrong, kThere, kHere) == Verdict::stale);
  association.close();
  CHECK(association.check(reset, kThere, kHere) == Verdict::stale);
}

TEST_CASE("rd association: a newer open replaces, an older one does nothing") {
  Handshake association = established();
  CHECK(association.check_open(names(RdKind::open, 9, 0, 0), kThere) == OpenVerdict::again);
  CHECK(association.check_open(names(RdKind::open, 8, 0, 0), kThere) == OpenVerdict::stale);
  CHECK(association.check_open(names(RdKind::open, 10, 0, 0), kThere) == OpenVerdict::replaces);
  CHECK(association.check_open(names(RdKind::open, 1, 0, 0), 0x3333) == OpenVerdict::replaces);
  association.close();
  association.establish(8, 0x3333, {.epoch = 1});
  CHECK(association.check_open(names(RdKind::open, 11, 0, 0), kThere) == OpenVerdict::stale);
}

TEST_CASE("rd association: strangers' Challenges have the open sent a few times at most") {
  Handshake association;
  CHECK_FALSE(association.challenged(kThere, {kNonce, {}}, kNow));
  association.open(7, kNonce, kNow);
  CHECK_FALSE(association.challenged(0, {kNonce, {}}, kNow));
  int sent = 0;
  for (int i = 0; i < 100; ++i) sent += association.challenged(kThere, {kNonce, {}}, kNow) ? 1 : 0;
  CHECK(sent == 4);
  association.on_open_deadline(kNow);
  CHECK(association.challenged(kThere, {kNonce, {}}, kNow));
  association.establish(7, kThere, {.epoch = 9});
  CHECK_FALSE(association.challenged(kThere, {kNonce, {}}, kNow));
}

TEST_CASE(
    "rd association: an answer that knows neither epoch nor incarnation establishes nothing") {
  Handshake association;
  association.open(7, kNonce, kNow);
  association.challenged(kThere, {kNonce, {}}, kNow);
  CHECK(association.check(names(RdKind::acknowledgement, 9, 6, kHere), kThere, kHere) ==
        Verdict::stale);
  CHECK(association.check(names(RdKind::acknowledgement, 9, 7, kHere + 1), kThere, kHere) ==
        Verdict::stale);
  CHECK(association.check(names(RdKind::acknowledgement, 9, 7, kHere), kThere + 1, kHere) ==
        Verdict::stale);
  CHECK_FALSE(association.established());
  CHECK(association.check(names(RdKind::data, 9, 7, kHere), kThere, kHere) == Verdict::accepted);
}

TEST_CASE("rd association: opens are repeated ever slower") {
  Handshake association;
  association.open(7, kNonce, kNow);
  Time now = association.open_deadline(seconds(1));
  CHECK(now == kNow + milliseconds(50));
  association.on_open_deadline(now);
  CHECK(association.open_deadline(seconds(1)) == now + milliseconds(100));
  for (int i = 0; i < 50; ++i) association.on_open_deadline(now);
  CHECK(association.open_deadline(seconds(1)) == now + milliseconds(400));
  CHECK(association.open_deadline(milliseconds(70)) == now + milliseconds(70));
  CHECK_FALSE(association.acceptance_time(now));
}

TEST_CASE("rd association: a Challenge that does not repeat the nonce is no Challenge") {
  Handshake association;
  association.open(7, kNonce, kNow);
  for (int i = 0; i < 100; ++i)
    CHECK_FALSE(association.challenged(kThere, {kNonce ^ uint64_t{1} << (i % 64), {}}, kNow));
  CHECK(association.header(RdKind::open).peer_incarnation == 0);
  CHECK(association.challenged(kThere, {kNonce, {}}, kNow));
}

TEST_CASE("rd association: nothing is accepted before a Challenge told the peer's incarnation") {
  Handshake association;
  association.open(7, kNonce, kNow);
  for (const RdKind kind : {RdKind::data, RdKind::acknowledgement, RdKind::refusal, RdKind::probe})
    CHECK(association.check(names(kind, 9, 7, kHere), kThere, kHere) != Verdict::accepted);
  CHECK_FALSE(association.established());
}

TEST_CASE(
    "rd association: a peer that took part in one of the same two incarnations before says so") {
  Handshake association = established();
  const auto opened = [&association](uint32_t epoch) {
    association.close();
    association.open(epoch, kNonce, kNow);
    CHECK_FALSE(association.header(RdKind::open).remembers());
    association.challenged(kThere, {kNonce, {}}, kNow);
    return association.header(RdKind::open).remembers();
  };
  CHECK_FALSE(association.header(RdKind::data).remembers());
  CHECK_FALSE(opened(8));  // nothing came in the first one
  REQUIRE(association.check(names(RdKind::data, 10, 8, kHere), kThere, kHere) == Verdict::accepted);
  CHECK_FALSE(association.header(RdKind::acknowledgement).remembers());
  CHECK_FALSE(association.peer_remembers());
  CHECK(opened(9));
  RdHeader answer = names(RdKind::data, 11, 9, kHere);
  answer.flags = kRdRemembersFlag;
  REQUIRE(association.check(answer, kThere, kHere) == Verdict::accepted);
  CHECK(association.header(RdKind::acknowledgement).remembers());
  CHECK(association.peer_remembers());

  association.close();
  association.establish(10, kThere + 1, {.epoch = 1});
  CHECK_FALSE(association.header(RdKind::data).remembers());
  association.close();
  association.establish(11, kThere, {.epoch = 12});
  CHECK(association.header(RdKind::data).remembers());
  association.forget();
  CHECK_FALSE(opened(12));
}

TEST_CASE("rd association: a reset repeats the number of what it answers") {
  RdHeader offending = names(RdKind::data, 7, 9, kThere);
  offending.sequence = 0x12345678;
  CHECK(rd_reset_for(offending, kHere).sequence == 0x12345678);
}

/// How many of all values of the low bits of four names are taken for the association's. The odds
/// of a blind datagram are this over the number of values; each name has 32 bits on the wire.
uint64_t accepted_guesses(RdKind kind, int epoch_bits, int peer_epoch_bits, int incarnation_bits,
                          int own_bits) {
  const Verdict accepting = kind == RdKind::reset ? Verdict::ended : Verdict::ours;
  const auto values = [](int bits) { return uint32_t{1} << bits; };
  const auto with_low = [](uint32_t name, uint32_t low, int bits) {
    return (name >> bits << bits) | low;
  };
  uint64_t accepted = 0;
  for (uint32_t a = 0; a < values(epoch_bits); ++a)
    for (uint32_t b = 0; b < values(peer_epoch_bits); ++b)
      for (uint32_t c = 0; c < values(incarnation_bits); ++c)
        for (uint32_t d = 0; d < values(own_bits); ++d) {
          Handshake association;
          association.establish(0x7007, kThere, {.epoch = 0x9009});
          const RdHeader guess =
              names(kind, with_low(0x9009, a, epoch_bits), with_low(0x7007, b, peer_epoch_bits),
                    with_low(kHere, d, own_bits));
          const uint32_t incarnation = with_low(kThere, c, incarnation_bits);
          accepted += association.check(guess, incarnation, kHere) == accepting ? 1 : 0;
        }
  return accepted;
}

TEST_CASE(
    "rd association: of all guesses at its names, however many bits they have, one is right") {
  CHECK(accepted_guesses(RdKind::data, 12, 0, 0, 0) == 1);
  CHECK(accepted_guesses(RdKind::data, 0, 12, 0, 0) == 1);
  CHECK(accepted_guesses(RdKind::data, 0, 0, 12, 0) == 1);
  CHECK(accepted_guesses(RdKind::data, 0, 0, 0, 12) == 1);
  CHECK(accepted_guesses(RdKind::data, 3, 3, 3, 3) == 1);
  CHECK(accepted_guesses(RdKind::data, 4, 2, 5, 1) == 1);
}

TEST_CASE("rd association: of all guesses at a reset's three names one is right, from anywhere") {
  CHECK(accepted_guesses(RdKind::reset, 12, 0, 0, 0) == 1);
  CHECK(accepted_guesses(RdKind::reset, 0, 12, 0, 0) == 1);
  CHECK(accepted_guesses(RdKind::reset, 0, 0, 0, 12) == 1);
  CHECK(accepted_guesses(RdKind::reset, 3, 3, 0, 3) == 1);
  CHECK(accepted_guesses(RdKind::reset, 4, 2, 5, 1) == 1 << 5);  // it may say that it is another
}

TEST_CASE("rd association: of all guesses at an open's nonce one has a Challenge taken") {
  int taken = 0;
  for (uint64_t guess = 0; guess < 4096; ++guess) {
    Handshake association;
    association.open(7, kNonce, kNow);
    taken += association.challenged(kThere, {kNonce >> 12 << 12 | guess, {}}, kNow) ? 1 : 0;
  }
  CHECK(taken == 1);
}
