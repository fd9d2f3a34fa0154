// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "common/operation.h"
#include "common/pingpong_ends.h"
#include "compare/lane.h"

namespace diwarp::tools {

/// Datagrams of the lanes in which they are many: what Ethernet carries over IPv4. Over loopback
/// the path would carry a train in one, so that nothing were to be split and joined.
inline constexpr uint32_t kSegment = 1472;

/// A way over queue pairs, each end with a device of its own.
struct VerbsWay {
  QpType transport = QpType::ud;
  Operation operation = Operation::send;
  size_t size = 64;
  bool crc = true;  ///< rc
  Waiting waiting = Waiting::progressing;
  uint32_t idle_queue_pairs = 0;  ///< open on the device besides
  uint32_t window = 0;            ///< messages on the way at once; 0: as diwarp-bandwidth has it
  uint32_t queue_pairs = 1;       ///< that are active
};

std::unique_ptr<Lane> make_verbs_ping_pong(const Place& place, const VerbsWay& way);
/// In valid bytes a second.
std::unique_ptr<Lane> make_verbs_flow(const Place& place, const VerbsWay& way);
/// Sends over datagrams, in messages a second.
std::unique_ptr<Lane> make_verbs_rate(const Place& place, const VerbsWay& way);

/// As many descriptors as this process may ask for; before the ends become two processes.
void raise_descriptor_limit();
/// Why so many queue pairs cannot be opened: "" if they can.
std::string descriptors_obstacle(uint32_t queue_pairs);

}  // namespace diwarp::tools
