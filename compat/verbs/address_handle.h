// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <infiniband/verbs.h>

#include "compat/common/use_count.h"
#include "compat/verbs/memory.h"

namespace diwarp::compat {

/// An address that UD queue pairs of a protection domain send to: that of a peer, or a group.
class Ah : public ibv_ah {
 public:
  /// Throws Refusal(EINVAL) where the attributes name no address that the device can send to.
  Ah(Pd& domain, const ibv_ah_attr& attributes);

  /// Without a port: a request names that, as the number of the peer's queue pair.
  const Address& address() const { return address_; }

 private:
  const Use of_domain_;
  const Address address_;
};

/// What leads back to the sender of a message. Throws Refusal(EINVAL) where `completion` has no
/// Global Route Header, or the header names none of the device's addresses and no group.
ibv_ah_attr reply_attributes(const Device& device, const ibv_wc& completion, const ibv_grh& header);

}  // namespace diwarp::compat
