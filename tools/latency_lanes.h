// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/control.h"

namespace diwarp::tools {

/// One way to carry a ping-pong between two processes, set up once and used round by round.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Near end: one round trip.
  virtual Duration ping() = 0;
  /// Far end: answers until the near end says something in the control channel.
  virtual void echo() = 0;
};

/// The lanes that are compared: plain sockets as the measure, and diwarp over the same protocols:
/// Sends, and RDMA Writes that are awaited by looking at memory, with Device::progress() between
/// two looks ("write") or without any verbs call, so that the RNIC thread does the work ("idle").
inline const std::vector<std::string> kLaneNames = {"udp", "tcp", "ud", "rc", "write", "idle"};

/// Which end of a lane is made; both are made at the same time.
enum class Side : uint8_t { near, far };

std::unique_ptr<Lane> make_lane(const std::string& name, Side side, Device& device,
                                Control& control, size_t size);

/// A UDP socket, unconnected as a datagram queue pair's is, and a TCP stream (TCP_NODELAY), both
/// polled without ever sleeping.
std::unique_ptr<Lane> make_udp_lane(Side side, Control& control, size_t size);
std::unique_ptr<Lane> make_tcp_lane(Side side, Control& control, size_t size);

}  // namespace diwarp::tools
