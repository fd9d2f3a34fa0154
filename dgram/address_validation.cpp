// SPDX-License-Identifier: Apache-2.0
#include "dgram/address_validation.h"

#include <chrono>

#include "base/byte_order.h"
#include "dgram/hashed_address.h"

namespace diwarp::dgram {

namespace {

// The bytes that are hashed after the address: incarnation (4 bytes), slot (8).
constexpr size_t kSlotAt = sizeof(uint32_t);
constexpr size_t kHashed = kSlotAt + sizeof(uint64_t);

uint64_t slot_of(Time now) {
  return static_cast<uint64_t>(now.time_since_epoch() / AddressValidation::kSlot);
}

}  // namespace

Cookie AddressValidation::make_in_slot(const Address& source, uint32_t incarnation,
                                       uint64_t slot) const {
  Cookie cookie;
  for (uint8_t half = 0; half < 2; ++half) {
    HashedAddress<kHashed> hashed(source, half);
    store_be(hashed.further(), incarnation);     // guard(reads)
    store_be(hashed.further() + kSlotAt, slot);  // guard(reads)
    store_be(cookie.data() + half * sizeof(uint64_t), siphash(key_, hashed.bytes()));
  }
  return cookie;
}

Cookie AddressValidation::make(const Address& source, uint32_t incarnation, Time now) const {
  return make_in_slot(source, incarnation, slot_of(now));
}

bool AddressValidation::valid(const Cookie& cookie, const Address& source, uint32_t incarnation,
                              Time now) const {
  const uint64_t slot = slot_of(now);
  // guard(read-progress): cookie == make_in_slot(source, incarnation, slot - 1) => false
  return cookie == make_in_slot(source, incarnation, slot) ||
         cookie == make_in_slot(source, incarnation, slot - 1);
}

}  // namespace diwarp::dgram
