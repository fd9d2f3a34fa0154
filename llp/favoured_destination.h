// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "llp/datagram_link.h"

/// What links have in common that carry a destination by a better way once they send to it all the
/// time, and leave the rest to the way below it.
namespace diwarp::llp {

inline bool all_go_to(const Destination& peer, std::span<const OutgoingDatagram> burst) {
  return std::all_of(burst.begin(), burst.end(), [&](const OutgoingDatagram& datagram) {
    return datagram.to == peer.address && datagram.local == peer.local;
  });
}

inline bool is_a_host(const Address& address) {
  return !address.is_multicast() && !address.is_broadcast() && !address.is_any();
}

/// Counts the bursts in a row that all went to one destination.
class DestinationStreak {
 public:
  /// `after`: so many after the first one, and the destination is favoured. 0: none ever is.
  explicit DestinationStreak(uint32_t after) : after_(after) {}

  bool counts() const { return after_ != 0; }
  /// Where the last burst went that was added.
  const Destination& destination() const { return destination_; }

  /// Adds a burst that is not empty. True once the destination has earned a better way; the next
  /// time as many bursts later.
  bool add(std::span<const OutgoingDatagram> burst) {
    if (!all_go_to(destination_, burst)) {
      destination_ = burst.front().destination();
      length_ = 0;
      return false;
    }
    if (++length_ < after_) return false;
    length_ = 0;
    return true;
  }

 private:
  uint32_t after_;
  uint32_t length_ = 0;
  Destination destination_;
};

/// While a ring has something the way below it is asked in one receive of so many, at least.
inline constexpr uint32_t kReceivesPerLookBelow = 64;

/// When the way below is looked at while a better one is: the sooner, the less silent it was.
class LookPlan {
 public:
  /// One receive in so many at least.
  explicit LookPlan(uint32_t most_between) : most_between_(most_between) {}

  /// The better way is new: what came by the other one before is received first.
  void begin() {
    looks_ahead_ = kLooksAhead;
    until_ = between_ = 1;
  }
  /// At the start of each receive.
  bool is_due() { return --until_ == 0; }
  /// After a look, which found something or not. The way below is read empty before the better one
  /// begins, for that came earlier; but others may keep filling it.
  void looked(bool came) {
    if (!came) looks_ahead_ = 0;
    between_ = came ? std::min(2u, most_between_) : std::min(2 * between_, most_between_);
    until_ = looks_ahead_ != 0 ? 1 : between_;
    if (looks_ahead_ != 0) --looks_ahead_;
  }

 private:
  static constexpr uint32_t kLooksAhead = 16;

  uint32_t most_between_;
  uint32_t until_ = 1;
  uint32_t between_ = 1;
  uint32_t looks_ahead_ = 0;
};

}  // namespace diwarp::llp
