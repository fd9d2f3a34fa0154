// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "diwarp/attributes.h"
#include "diwarp/datagram_options.h"
#include "diwarp/device_options.h"
#include "llp/udp/udp_link.h"

/// UDP as a device has it, whatever moves its bytes.
namespace diwarp::llp {

/// The settings of sockets by a device's options, and a queue pair's.
UdpOptions udp_options(const DeviceOptions& device);
UdpOptions udp_options(const DeviceOptions& device, const DatagramOptions& datagram);

/// "UDP", and what moves its bytes.
std::string describe_udp(std::string_view mover, const DeviceOptions& device);

/// 0, or the errno that tells why `address` is none of this host's. Group and broadcast addresses
/// can be bound, but nothing can be sent from them.
int check_udp_address(const Address& address);

/// The means that the system gives to a UDP socket at `local` (its port does not matter) with these
/// options. Asks a socket of its own, which sends itself two datagrams. Throws Error as
/// UdpLink::open() does.
DatagramSocketAttributes ask_udp_support(const Address& local, const UdpOptions& options);

}  // namespace diwarp::llp
