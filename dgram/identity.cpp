// SPDX-License-Identifier: Apache-2.0
#include "dgram/identity.h"

#include "base/byte_order.h"
#include "dgram/hashed_address.h"

namespace diwarp::dgram {
namespace {

// Each purpose has names that tell nothing of another's.
constexpr uint8_t kIncarnation = 1;
constexpr uint8_t kEpoch = 2;
constexpr uint8_t kNonce = 3;

}  // namespace

uint64_t Identity::derive(uint8_t purpose, const Address& address, uint64_t count) const {
  HashedAddress<sizeof(count)> hashed(address, purpose);
  store_be(hashed.further(), count);
  return siphash(secret_, hashed.bytes());
}

uint32_t Identity::draw_incarnation(const Address& destination) {
  const auto drawn = static_cast<uint32_t>(derive(kIncarnation, destination, 0));
  latest_ = destination;
  latest_incarnation_ = drawn != 0 ? drawn : 1;
  return latest_incarnation_;
}

uint32_t Identity::next_epoch(const Address& peer) {
  const auto first = static_cast<uint32_t>(derive(kEpoch, peer, 0));
  uint32_t epoch = first + epochs_++;
  if (epoch == 0) epoch = first + epochs_++;
  return epoch;
}

uint64_t Identity::next_nonce() { return derive(kNonce, Address(), nonces_++); }

}  // namespace diwarp::dgram
