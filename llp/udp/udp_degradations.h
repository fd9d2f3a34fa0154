// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "llp/datagram_link.h"

namespace diwarp::llp {

/// The means that a UDP link may have to do without.
inline constexpr std::array kUdpDegradations = {
    Degradation{Counter::gso_missing, "there is no UDP_SEGMENT: datagrams leave singly", true},
    Degradation{Counter::gso_refused,
                "the system knows UDP_SEGMENT but refused to segment: datagrams leave singly",
                true},
    Degradation{Counter::gro_missing,
                "there is no UDP_GRO, or slots are too small for it: datagrams come in singly"},
    Degradation{Counter::rx_buffer_cut,
                "there is less receive buffer than was asked for: bursts are lost earlier"},
    Degradation{Counter::tx_buffer_cut,
                "there is less send buffer than was asked for: sends wait earlier", true},
    Degradation{Counter::jumbo_refused,
                "the send buffer cannot hold the fragments of one datagram: none is fragmented",
                true},
    Degradation{Counter::busy_poll_refused, "the system's choice of busy polling stays"},
    Degradation{Counter::connect_refused,
                "there is no second socket for a frequent destination: all goes by the first",
                true},
};

/// Where in the table it is.
constexpr size_t udp_degradation(Counter counter) {
  size_t index = 0;
  while (kUdpDegradations[index].counter != counter) ++index;
  return index;
}

}  // namespace diwarp::llp
