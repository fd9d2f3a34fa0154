// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace diwarp::rnic {

/// Counts what happens within a second, and when it happened last.
class StagMissCount {
 public:
  void add(Time now);
  /// Since the second began that the last one was in.
  uint32_t within_second(Time now) const;
  /// When that second is over. Something was counted.
  Time second_end() const;
  bool within(Duration period, Time now) const { return any_ && now - last_ < period; }

 private:
  Time second_{};  // when it began
  Time last_{};
  uint32_t count_ = 0;
  bool any_ = false;
};

/// The misses within a second, in few bytes: to the millisecond, and not when it was last.
class BriefMissCount {
 public:
  void add(Time now) {
    if (within_second(now) == 0) began_ = milliseconds(now), count_ = 0;
    ++count_;
  }
  uint32_t within_second(Time now) const { return since(now) < 1000 ? count_ : 0; }
  /// When that second is over; it has not been at `now`.
  Time second_end(Time now) const { return now + std::chrono::milliseconds(1000 - since(now)); }

 private:
  static uint32_t milliseconds(Time time) {  // modulo 2^32, 49 days
    const auto whole = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
    return static_cast<uint32_t>(whole.count());
  }
  uint32_t since(Time now) const { return milliseconds(now) - began_; }

  uint32_t began_ = 0;
  uint32_t count_ = 0;
};

/// Whether an address names memory rightly, or guesses.
class StagRecord {
 public:
  void missed(Time now) { last_miss_ = now; }
  void hit(Duration memory, Time now) {
    // guard(rd-stag-misses): condition => last_miss_ == kUnknown || !trusted()
    // guard(rd-stag-misses): condition => last_miss_ == kUnknown
    if (last_miss_ == kUnknown || (!trusted() && now - last_miss_ >= memory)) last_miss_ = kTrusted;
  }
  /// It named memory rightly, and for so long never in vain.
  bool trusted() const { return last_miss_ == kTrusted; }

 private:
  static constexpr Time kUnknown = Time::min();
  static constexpr Time kTrusted = kUnknown + Duration(1);

  Time last_miss_ = kUnknown;
};

/// Slows down sources that guess STags (RFC 5042 section 6.2.2): one that named memory in vain too
/// often is not listened to for a while. Others are: while too many guess, the sources that are
/// proven and have not guessed.
class StagMissLimit {
 public:
  enum class Verdict : uint8_t {
    pass,
    source_exhausted,  ///< it had its misses of this second
    all_exhausted,     ///< all had theirs, and this is one of those that may be guessing
  };

  /// The limits hold for a second. `memory`: how long a source is taken for one that guesses.
  StagMissLimit(uint32_t per_source, uint32_t in_all, Duration memory)
      : per_source_(per_source), in_all_(in_all), memory_(memory) {}

  /// Whether a segment that names memory is checked any further. `proven`: of its source, as
  /// RecordSource::is_proven() says.
  Verdict check(const StagMissCount& of_source, bool proven, Time now) const;
  void missed(StagMissCount& of_source, Time now);

  /// The same over RD, where segments wait instead of being dropped: when one that names memory is
  /// checked; `now`: at once. While too many sources guess, trusted addresses do not wait, and the
  /// others wait in turn. `others_first`: others wait already, and this segment comes after them.
  Time passes_at(const BriefMissCount& of_peer, const StagRecord& of_address, bool others_first,
                 Time now) const;
  /// Whether the peer has had its misses of this second.
  bool exhausted(const BriefMissCount& of_peer, Time now) const {
    return of_peer.within_second(now) >= per_source_;
  }
  void missed(BriefMissCount& of_peer, StagRecord& of_address, Time now);
  void hit(StagRecord& of_address, Time now) const { of_address.hit(memory_, now); }

 private:
  const uint32_t per_source_;
  const uint32_t in_all_;
  const Duration memory_;
  StagMissCount all_;
};

}  // namespace diwarp::rnic
