// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/siphash.h"
#include "diwarp/types.h"

namespace diwarp::rnic {

/// STags for the sinks of Reads over datagrams: each is used once and looks random. They are what a
/// secret permutation of 32 bits makes of a counter, so none comes twice before 2^32 - 1 others
/// have come, which keeps a late response from meeting a newer Read without any memory of those
/// that are over. (At a million Reads a second that takes more than an hour; they need to rest for
/// a minute.)
class SinkStags {
 public:
  explicit SinkStags(const SipKey& key) : key_(key) {}

  /// Never 0.
  STag next();

 private:
  STag permuted(uint32_t value) const;

  const SipKey key_;
  uint32_t count_ = 0;
};

}  // namespace diwarp::rnic
