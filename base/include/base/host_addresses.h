// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "diwarp/address.h"

namespace diwarp {

/// The IP addresses of this host's interfaces, without ports; none where the system does not tell.
std::vector<Address> host_addresses();

}  // namespace diwarp
