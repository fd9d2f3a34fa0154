// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/netlink.h>

#include <cstddef>

#include "base/bytes.h"

namespace diwarp::llp {

/// Asks the kernel one question of a netlink protocol that it answers within the call. Returns the
/// bytes of the answer that `answer` has, which begin with an nlmsghdr; none where there is none.
ConstBytes ask_netlink(int protocol, ConstBytes question, Bytes answer);

}  // namespace diwarp::llp
