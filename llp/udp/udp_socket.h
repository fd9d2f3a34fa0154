// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <memory>

#include "base/unique_fd.h"
#include "diwarp/address.h"
#include "llp/udp/icmp_errors.h"
#include "llp/udp/local_addresses.h"
#include "llp/udp/udp_degradations.h"
#include "llp/udp/udp_options.h"

namespace diwarp::llp {

/// A link's socket, and what each part of the link has to know of it. The link owns it.
struct UdpSocket {
  /// Takes a bound socket and sets its options, but for segmenting and coalescing. `for_group`: it
  /// receives what is sent to a group. Throws Error (Errc::invalid_argument: no such multicast
  /// interface).
  UdpSocket(UniqueFd bound, const UdpOptions& options, bool for_group);

  const UniqueFd fd;
  const Address local;
  const uint32_t interface;                      // index, for multicast; 0: the system's choice
  const std::unique_ptr<LocalAddresses> locals;  // of one at all addresses of the host; else null
  UdpDegradations degradations;
  IcmpErrors icmp;
  const sa_family_t family;
  const bool group;           // receives what is sent to a group, and nothing else
  bool connected = false;     // to a peer: messages leave without an address
  uint32_t local_number = 0;  // of a link made by beside(): that of its own address
};

}  // namespace diwarp::llp
