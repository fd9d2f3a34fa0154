// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "base/unique_fd.h"
#include "diwarp/address.h"
#include "llp/udp/udp_socket.h"

namespace diwarp::llp {

/// A socket that receives what is sent to `group` and its port, or that of `first` where it is 0.
/// `share_port` as UdpOptions has it, all else as DatagramLink::open_group() has it, which also
/// says what is thrown.
UniqueFd open_group_socket(const UdpSocket& first, bool share_port, const Address& group,
                           std::string_view interface);

}  // namespace diwarp::llp
