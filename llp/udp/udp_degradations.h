// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

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

/// What one link has to do without. Each is told once.
class UdpDegradations {
 public:
  /// The counter is that of one of kUdpDegradations.
  void add(Counter counter);
  bool has(Counter counter) const { return (happened_ >> udp_degradation(counter) & 1U) != 0; }
  /// As DatagramLink has it: others are told from within add().
  void on_degradation(std::function<void(const Degradation&)> callback);

 private:
  uint32_t happened_ = 0;  // a bit for each, as they stand in the table
  std::function<void(const Degradation&)> callback_;
};

}  // namespace diwarp::llp
