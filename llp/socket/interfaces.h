// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "diwarp/address.h"

namespace diwarp::llp {

/// The index of the interface with this name. Throws Error (Errc::invalid_argument).
uint32_t interface_named(std::string_view name);

/// The index of the interface that has this address, or one of its subnet (127.0.0.2 is the
/// loopback's); 0 for the wildcard and for addresses of nobody.
uint32_t interface_of(const Address& local);

/// The index of an interface whose subnet has this broadcast address; 0 where none has.
uint32_t interface_of_broadcast(const Address& broadcast);

}  // namespace diwarp::llp
