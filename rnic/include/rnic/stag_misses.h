// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace diwarp::rnic {

/// Counts what happens within a second, and when it happened last.
class StagMissCount {
 public:
  void add(Time now);
  /// Since the second began that the last one was in.
  uint32_t within_second(Time now) const;
  bool within(Duration period, Time now) const { return any_ && now - last_ < period; }

 private:
  Time second_{};  // when it began
  Time last_{};
  uint32_t count_ = 0;
  bool any_ = false;
};

/// Slows down those who guess STags (RFC 5042 section 6.2.2): who named memory in vain too often is
/// not listened to for a while. Others are: while too many guess, those who neither guessed nor
/// could be anybody.
class StagMissLimit {
 public:
  enum class Verdict : uint8_t {
    pass,
    source_exhausted,  ///< it had its misses of this second
    all_exhausted,     ///< all had theirs, and this is one of those who may be guessing
  };

  /// The limits hold for a second. `memory`: how long a source is taken for one that guesses.
  StagMissLimit(uint32_t per_source, uint32_t in_all, Duration memory)
      : per_source_(per_source), in_all_(in_all), memory_(memory) {}

  /// Whether to look at a segment that names memory. `proven`: its source is not just anybody.
  Verdict check(const StagMissCount& of_source, bool proven, Time now) const;
  void missed(StagMissCount& of_source, Time now);

 private:
  const uint32_t per_source_;
  const uint32_t in_all_;
  const Duration memory_;
  StagMissCount all_;
};

}  // namespace diwarp::rnic
