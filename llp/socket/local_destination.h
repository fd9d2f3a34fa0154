// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/address.h"

namespace diwarp::llp {

/// Whether this host delivers what is sent to the address to itself, and to nobody else, by its
/// routes now. False where the kernel does not tell.
bool is_local_destination(const Address& to);

}  // namespace diwarp::llp
