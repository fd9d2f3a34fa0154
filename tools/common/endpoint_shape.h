// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/group.h"
#include "common/operation.h"

namespace diwarp::tools {

/// The objects that one end of a measurement needs: equal slots of memory for what leaves, and for
/// what comes in (messages, what is read, what the peer writes), as many as may be posted at once.
struct EndpointShape {
  QpType transport = QpType::ud;
  /// The requests of this end.
  Operation operation = Operation::send;
  /// The rights of the peer here: write into the receive slots, or read or change the send slots.
  Access grants = Access::none;
  size_t send_size = 0;
  uint32_t send_slots = 1;
  size_t receive_size = 0;
  uint32_t receive_slots = 1;
  uint64_t max_rate = 0;
  SegmentChoice segment = {};
  RecordCompletion completion = RecordCompletion::complete;  ///< of Write-Records that come
  /// Ping-pongs over UD: a Write-Record or a Read of which a part came is an answer.
  bool takes_partial = false;
  CongestionControl congestion = CongestionControl::bbr;  ///< RD
  std::string transmissions = {};                         ///< RD: ReliableOptions::transmission_log
  /// RC: ask for CRCs.
  bool crc = true;
  /// This end is a member of it.
  std::optional<Group> group = {};

  /// This end asks, and the peer answers.
  bool asks() const { return info_of(operation).manner == Manner::requests; }
  /// This end uses memory of the peer.
  bool needs_peer_memory() const { return info_of(operation).access != Access::none; }
  /// Completions that may wait at once where nobody polls.
  uint32_t completions() const { return send_slots + receive_slots; }
  /// A message that comes takes a posted receive.
  bool takes_receives() const { return !asks() && grants == Access::none; }
};

}  // namespace diwarp::tools
