// SPDX-License-Identifier: Apache-2.0
#include "diwarp/queue_pair.h"
#include "provider/protection_domain.h"
#include "verbs/handle_access.h"

namespace diwarp {

AddressHandle::AddressHandle(const ProtectionDomain& pd, const Address& destination)
    : address_(destination) {
  impl_of(pd)->check_destination(destination);
}

}  // namespace diwarp
