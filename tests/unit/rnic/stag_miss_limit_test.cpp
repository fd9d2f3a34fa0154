// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/stag_miss_limit.h"

#include <chrono>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace std::chrono_literals;
using Verdict = StagMissLimit::Verdict;

namespace {

constexpr Time kStart{1000s};

}  // namespace

TEST_CASE("a source that named memory in vain too often waits for the second to end") {
  StagMissLimit limit(3, 100, 60s);
  StagMissCount source;
  for (int i = 0; i < 3; ++i) {
    CHECK(limit.check(source, true, kStart) == Verdict::pass);
    limit.missed(source, kStart);
  }
  CHECK(limit.check(source, true, kStart + 999ms) == Verdict::source_exhausted);
  CHECK(limit.check(StagMissCount(), false, kStart) == Verdict::pass);
  CHECK(limit.check(source, true, kStart + 1s) == Verdict::pass);
}

TEST_CASE("while too many guess, sources pass that are proven and have not missed lately") {
  StagMissLimit limit(100, 3, 60s);
  StagMissCount guesser;
  StagMissCount mistaken;
  limit.missed(mistaken, kStart);
  for (int i = 0; i < 3; ++i) limit.missed(guesser, kStart + 2s);
  const Time now = kStart + 2s;
  CHECK(limit.check(StagMissCount(), true, now) == Verdict::pass);
  CHECK(limit.check(StagMissCount(), false, now) == Verdict::all_exhausted);
  CHECK(limit.check(mistaken, true, now) == Verdict::all_exhausted);
  CHECK(limit.check(guesser, true, now) == Verdict::all_exhausted);
  CHECK(limit.check(guesser, false, now + 1s) == Verdict::pass);
  for (int i = 0; i < 3; ++i) limit.missed(guesser, kStart + 61s);
  CHECK(limit.check(mistaken, true, kStart + 61s) == Verdict::pass);
}

TEST_CASE(
    "over RD, while too many guess, sources pass that named memory rightly and never in vain") {
  StagMissLimit limit(100, 3, 60s);
  BriefMissCount guesser;
  StagRecord guessers, unknown, honest, mistaken;
  limit.hit(honest, kStart);
  limit.hit(mistaken, kStart);
  BriefMissCount once;
  limit.missed(once, mistaken, kStart);
  const Time now = kStart + 2s;
  for (int i = 0; i < 3; ++i) limit.missed(guesser, guessers, now);
  CHECK(limit.passes_at(BriefMissCount(), honest, false, now) == now);
  CHECK(limit.passes_at(BriefMissCount(), unknown, false, now) == now + 1s);
  CHECK(limit.passes_at(BriefMissCount(), guessers, false, now) == now + 1s);
  limit.hit(mistaken, now);
  CHECK(limit.passes_at(BriefMissCount(), mistaken, false, now) == now + 1s);
  CHECK(limit.passes_at(BriefMissCount(), unknown, false, now + 1s) == now + 1s);
  // After so long without a miss it is trusted again.
  const Time later = kStart + 60s;
  for (int i = 0; i < 3; ++i) limit.missed(guesser, guessers, later);
  CHECK(limit.passes_at(BriefMissCount(), mistaken, false, later) == later + 1s);
  limit.hit(mistaken, later);
  CHECK(limit.passes_at(BriefMissCount(), mistaken, false, later) == later);
}

TEST_CASE("guesses hit as often as the limit and the number of regions say") {
  // With STags of 12 bits instead of 32, and 16 regions: one guess in 256.
  constexpr uint32_t kPerSecond = 64;
  StagMissLimit limit(kPerSecond, kPerSecond, 60s);
  StagMissCount guesser;
  uint64_t random = 1;
  uint32_t looked = 0;
  uint32_t hits = 0;
  constexpr int kSeconds = 200;
  for (int second = 0; second < kSeconds; ++second)
    for (int guess = 0; guess < 1000; ++guess) {
      const Time now = kStart + second * 1s + guess * 1ms;
      if (limit.check(guesser, false, now) != Verdict::pass) continue;
      ++looked;
      random = random * 6364136223846793005U + 1442695040888963407U;
      if (random >> 52 < 16)
        ++hits;
      else
        limit.missed(guesser, now);
    }
  // 64 misses a second, and now and then a hit: 50 in 12,800 are expected, 7 the deviation.
  CHECK(looked < kSeconds * (kPerSecond + 8));
  CHECK(looked >= kSeconds * kPerSecond / 2);
  CHECK(hits > 10);
  CHECK(hits < 90);
}

TEST_CASE("over RD those whose addresses are not trusted join the line, where there is one") {
  const Time now = Time{} + 100s;
  const StagMissLimit limit(3, 12, 60s);
  StagRecord honest, unknown;
  limit.hit(honest, now);
  CHECK(limit.passes_at(BriefMissCount(), unknown, false, now) == now);
  CHECK(limit.passes_at(BriefMissCount(), unknown, true, now) > now);
  CHECK(limit.passes_at(BriefMissCount(), honest, true, now) == now);
}
