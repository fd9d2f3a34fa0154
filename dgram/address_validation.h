// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/siphash.h"
#include "dgram/control.h"
#include "diwarp/address.h"

namespace diwarp::dgram {

/// Cookies, by which a source shows that it hears what is sent to the address that it sends from. A
/// cookie is a keyed hash of that address, the source's incarnation and the time, so that a queue
/// pair remembers nothing of those it challenges.
class AddressValidation {
 public:
  /// For how long a source that echoed a cookie may be sent more than it sends.
  static constexpr Duration kValidFor = std::chrono::seconds(60);
  /// A cookie is good for the slot of time it was made in and the next one.
  static constexpr Duration kSlot = std::chrono::seconds(30);

  explicit AddressValidation(const SipKey& key) : key_(key) {}

  /// The cookie to challenge a source with.
  Cookie make(const Address& source, uint32_t incarnation, Time now) const;
  /// Whether this is one that it was challenged with not long ago.
  bool valid(const Cookie& cookie, const Address& source, uint32_t incarnation, Time now) const;

 private:
  Cookie make_in_slot(const Address& source, uint32_t incarnation, uint64_t slot) const;

  const SipKey key_;
};

}  // namespace diwarp::dgram
