// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace network {

/// An Ethernet frame as a TAP device hands it out.
using Frame = std::vector<uint8_t>;
using Mac = std::array<uint8_t, 6>;

inline constexpr size_t kEthernetBytes = 14;
inline constexpr uint8_t kTcp = 6;
inline constexpr uint8_t kUdp = 17;

Mac destination_of(const Frame& frame);
Mac source_of(const Frame& frame);
/// Broadcast or multicast: for every port.
bool for_group(const Frame& frame);

/// The fields of an IP packet that are looked at. All zero: the frame carries none that is.
struct Packet {
  uint8_t protocol = 0;              ///< of the fragment, too, if it is one
  bool fragment = false;             ///< other than the first
  std::span<const uint8_t> payload;  ///< of UDP; the first fragment's part of it
  bool traffic() const { return protocol == kTcp || protocol == kUdp; }
};
Packet packet_of(const Frame& frame);

}  // namespace network
