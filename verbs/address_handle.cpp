// SPDX-License-Identifier: Apache-2.0
#include "diwarp/error.h"
#include "diwarp/queue_pair.h"
#include "rnic/datagram/reach.h"
#include "rnic/memory/protection_domain.h"
#include "verbs/handle_access.h"

namespace diwarp {

AddressHandle::AddressHandle(const ProtectionDomain& pd, const Address& destination)
    : address_(destination) {
  const Address& local = impl_of(pd)->device()->address();
  if (rnic::can_reach(local, destination)) return;
  throw Error(make_error_code(Errc::invalid_destination),
              "Nothing can be sent from " + local.host() + " to " + destination.to_string() +
                  ": give an address of the same family, with the port of a queue pair");
}

}  // namespace diwarp
