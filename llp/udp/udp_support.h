// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diwarp/attributes.h"
#include "llp/udp/udp.h"

namespace diwarp::llp {

/// What the system gives to a UDP socket at `local` (its port does not matter) with these options.
/// Asks a socket of its own, which sends itself two datagrams. Throws Error as UdpLink::open()
/// does.
DatagramSocketAttributes ask_udp_support(const Address& local, const UdpOptions& options);

}  // namespace diwarp::llp
