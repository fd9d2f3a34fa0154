// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "diwarp/address.h"

namespace diwarp {

/// What an IPv4-mapped IPv6 address begins with (RFC 4291 section 2.5.5.2).
inline constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

/// An IPv4-mapped IPv6 address (::ffff:a.b.c.d) as the IPv4 address that it means; any other as it
/// is.
Address unmapped(const Address& address);

}  // namespace diwarp
