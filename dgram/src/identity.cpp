// SPDX-License-Identifier: Apache-2.0
#include "dgram/identity.h"

#include <algorithm>
#include <array>

#include "base/byte_order.h"

namespace diwarp::dgram {
namespace {

// What is hashed: address (16 bytes, IPv4 filled up with zeros), family, purpose (one byte each),
// port (2), scope (4), count (8).
constexpr size_t kFamilyAt = 16;
constexpr size_t kPurposeAt = 17;
constexpr size_t kPortAt = 18;
constexpr size_t kScopeAt = 20;
constexpr size_t kCountAt = 24;
using Hashed = std::array<std::byte, 32>;
static_assert(kCountAt + sizeof(uint64_t) == sizeof(Hashed));

// Each purpose has names that tell nothing of another's.
constexpr uint8_t kIncarnation = 1;
constexpr uint8_t kEpoch = 2;
constexpr uint8_t kNonce = 3;

}  // namespace

uint64_t Identity::derive(uint8_t purpose, const Address& address, uint64_t count) const {
  Hashed hashed{};
  const auto bytes = std::as_bytes(address.bytes());
  std::copy(bytes.begin(), bytes.end(), hashed.begin());
  hashed[kFamilyAt] = static_cast<std::byte>(address.family());
  hashed[kPurposeAt] = std::byte{purpose};
  store_be(&hashed[kPortAt], address.port());
  store_be(&hashed[kScopeAt], address.scope_id());
  store_be(&hashed[kCountAt], count);
  return siphash(secret_, hashed);
}

uint32_t Identity::incarnation(const Address& destination) {
  if (latest_incarnation_ != 0 && latest_ == destination) return latest_incarnation_;
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
