// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/stag_miss_limit.h"

#include <algorithm>
#include <chrono>

namespace diwarp::rnic {

namespace {

constexpr Duration kSecond = std::chrono::seconds(1);

}  // namespace

void StagMissCount::add(Time now) {
  if (within_second(now) == 0) {
    second_ = now;
    count_ = 0;
  }
  ++count_;
  last_ = now;
  any_ = true;
}

uint32_t StagMissCount::within_second(Time now) const {
  return any_ && now - second_ < kSecond ? count_ : 0;
}

Time StagMissCount::second_end() const { return second_ + kSecond; }

StagMissLimit::Verdict StagMissLimit::check(const StagMissCount& of_source, bool proven,
                                            Time now) const {
  // guard(guesses)
  if (of_source.within_second(now) >= per_source_) return Verdict::source_exhausted;
  // guard(guesses): => return Verdict::pass;
  if (all_.within_second(now) < in_all_) return Verdict::pass;
  // guard(stag-misses-memory): without && !of_source.within(memory_, now)
  // guard(guesses): => const bool trusted = true;
  const bool trusted = proven && !of_source.within(memory_, now);
  return trusted ? Verdict::pass : Verdict::all_exhausted;
}

void StagMissLimit::missed(StagMissCount& of_source, Time now) {
  of_source.add(now);
  all_.add(now);
}

Time StagMissLimit::passes_at(const BriefMissCount& of_peer, const StagRecord& of_address,
                              bool others_first, Time now) const {
  if (exhausted(of_peer, now)) return of_peer.second_end(now);  // guard(rd-guesses)
  // guard(rd-stag-misses-trusted): without !others_first &&
  const bool all_may = !others_first && all_.within_second(now) < in_all_;
  // guard(rd-guesses): condition => all_may
  // guard(rd-guesses): condition => true
  if (all_may || of_address.trusted()) return now;
  return std::max(all_.second_end(), now + Duration(1));
}

void StagMissLimit::missed(BriefMissCount& of_peer, StagRecord& of_address, Time now) {
  of_peer.add(now);
  of_address.missed(now);
  all_.add(now);
}

}  // namespace diwarp::rnic
