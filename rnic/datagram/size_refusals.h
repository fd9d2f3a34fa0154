// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp::rnic {

/// How often in a row what is to be sent was refused for its size (EMSGSIZE). Each time the link
/// has learned what the path carries now, and the rest is cut anew; but the path may narrow again
/// before anything is sent, so that is done a few times.
class SizeRefusals {
 public:
  static constexpr uint8_t kMost = 8;

  /// One more. False: it is given up.
  bool may_cut_anew() { return ++count_ <= kMost; }
  void clear() { count_ = 0; }

 private:
  uint8_t count_ = 0;
};

}  // namespace diwarp::rnic
