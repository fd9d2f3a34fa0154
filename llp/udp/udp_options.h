// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/clock.h"

namespace diwarp::llp {

struct UdpOptions {
  /// Bytes of socket buffer, 0 to leave the system's default. Beyond net.core.rmem_max and
  /// wmem_max only with CAP_NET_ADMIN; without it the kernel gives what it may. The receive buffer
  /// is large because a burst that finds no room is lost.
  size_t receive_buffer = size_t{8} << 20;
  size_t send_buffer = size_t{4} << 20;
  /// Let the kernel segment what leaves (UDP_SEGMENT), and coalesce what comes (UDP_GRO), where it
  /// can.
  bool segmentation = true;
  bool coalescing = true;
  /// Let IP fragment datagrams that exceed the path MTU. Without it they are refused (EMSGSIZE).
  bool fragment = false;
  /// Other links of this user that have this, too, may be bound to the same address and port
  /// (SO_REUSEPORT), each with groups of its own. A datagram to the address itself goes to one of
  /// them, of the kernel's choice.
  bool share_port = false;
  /// Allow broadcast destinations (SO_BROADCAST).
  bool broadcast = true;
  /// Datagrams to multicast groups: their time to live (IPv6: hop limit), whether members on this
  /// host hear them, and the name of the interface where they leave (empty: that of the link's
  /// address, or the system's choice).
  uint8_t multicast_hops = 1;
  bool multicast_loopback = true;
  std::string multicast_interface = {};
  /// As set_busy_poll() has it.
  Duration busy_poll = Duration::zero();
};

}  // namespace diwarp::llp
