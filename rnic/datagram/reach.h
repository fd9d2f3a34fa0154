// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/address.h"

namespace diwarp::rnic {

/// Whether datagrams can be sent from `local` to `to`: it has a port, and is of a family that a
/// socket there speaks.
inline bool can_reach(const Address& local, const Address& to) {
  const bool both_families = local.family() == AddressFamily::ipv6 && local.is_any();
  // guard(posting): without to.port() != 0 &&
  // guard(posting): without && !to.is_any()
  // guard(posting): => return to.port() != 0 && !to.is_any() && true;
  return to.port() != 0 && !to.is_any() && (to.family() == local.family() || both_families);
}

}  // namespace diwarp::rnic
