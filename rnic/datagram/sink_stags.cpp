// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/sink_stags.h"

#include <array>

#include "base/byte_order.h"

namespace diwarp::rnic {

namespace {

constexpr uint8_t kRounds = 8;

}  // namespace

STag SinkStags::next() {
  STag drawn = 0;
  while (drawn == 0) drawn = permuted(count_++);  // guard(rnic): => drawn = count_++;
  return drawn;
}

/// A Feistel network: whatever its rounds mix in, it maps no two values to the same.
STag SinkStags::permuted(uint32_t value) const {
  auto left = static_cast<uint16_t>(value >> 16);
  auto right = static_cast<uint16_t>(value);
  for (uint8_t round = 0; round < kRounds; ++round) {
    std::array<std::byte, 3> mixed{std::byte{round}};
    store_be(&mixed[1], right);
    const auto next = static_cast<uint16_t>(left ^ siphash(key_, mixed));
    left = right;
    right = next;
  }
  return static_cast<STag>(left) << 16 | right;
}

}  // namespace diwarp::rnic
