// SPDX-License-Identifier: Apache-2.0
#include "dgram/address_validation.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "base/byte_order.h"

namespace diwarp::dgram {

namespace {

// What is hashed: address (16 bytes, IPv4 filled up with zeros), family, part of the cookie (one
// byte each), port (2), scope, incarnation (4 each), slot (8).
constexpr size_t kFamilyAt = 16;
constexpr size_t kHalfAt = 17;
constexpr size_t kPortAt = 18;
constexpr size_t kScopeAt = 20;
constexpr size_t kIncarnationAt = 24;
constexpr size_t kSlotAt = 28;
using Hashed = std::array<std::byte, 36>;
static_assert(kSlotAt + sizeof(uint64_t) == sizeof(Hashed));

Hashed hashed_of(const Address& source, uint32_t incarnation, uint64_t slot) {
  Hashed hashed{};
  const std::span<const std::byte> address = std::as_bytes(source.bytes());
  std::copy(address.begin(), address.end(), hashed.begin());
  hashed[kFamilyAt] = static_cast<std::byte>(source.family());
  store_be(&hashed[kPortAt], source.port());
  store_be(&hashed[kScopeAt], source.scope_id());
  store_be(&hashed[kIncarnationAt], incarnation);
  store_be(&hashed[kSlotAt], slot);
  return hashed;
}

uint64_t slot_of(Time now) {
  return static_cast<uint64_t>(now.time_since_epoch() / AddressValidation::kSlot);
}

}  // namespace

Cookie AddressValidation::make_in_slot(const Address& source, uint32_t incarnation,
                                              uint64_t slot) const {
  Hashed hashed = hashed_of(source, incarnation, slot);
  Cookie cookie;
  for (size_t half = 0; half < 2; ++half) {
    hashed[kHalfAt] = static_cast<std::byte>(half);
    store_be(cookie.data() + half * sizeof(uint64_t), siphash(key_, hashed));
  }
  return cookie;
}

Cookie AddressValidation::make(const Address& source, uint32_t incarnation,
                                      Time now) const {
  return make_in_slot(source, incarnation, slot_of(now));
}

bool AddressValidation::valid(const Cookie& cookie, const Address& source,
                              uint32_t incarnation, Time now) const {
  const uint64_t slot = slot_of(now);
  return cookie == make_in_slot(source, incarnation, slot) ||
         cookie == make_in_slot(source, incarnation, slot - 1);
}

}  // namespace diwarp::dgram
