// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "diwarp/types.h"

namespace diwarp::rdmap {

inline constexpr uint8_t kVersion = 1;  // RV, RFC 5040 section 4.1

/// RDMAP opcodes (RFC 5040 figure 4, RFC 7306 section 4), and datagram-iWARP's own.
enum class Opcode : uint8_t {
  rdma_write = 0,
  read_request = 1,
  read_response = 2,
  send = 3,
  send_invalidate = 4,
  send_solicited = 5,
  send_solicited_invalidate = 6,
  terminate = 7,
  immediate = 8,
  immediate_solicited = 9,
  atomic_request = 10,
  atomic_response = 11,
  write_record = 12,  ///< datagrams only
};

/// The queues of untagged messages (RFC 5040 section 5.3, RFC 7306 section 5).
inline constexpr uint32_t kSendQueue = 0;
inline constexpr uint32_t kRequestQueue = 1;
inline constexpr uint32_t kTerminateQueue = 2;
inline constexpr uint32_t kAtomicResponseQueue = 3;
inline constexpr uint32_t kQueues = 4;

struct OpcodeFacts {
  Opcode opcode;
  std::string_view name;
  bool tagged;
  uint32_t queue_number;
  bool solicited;
  bool invalidates;  ///< carries the STag to invalidate
  bool
      one_segment;  ///< the whole message has this many bytes behind the DDP header, in one segment
  size_t body_bytes;  ///< where one_segment; Terminate's vary (0)
  bool on_streams;    ///< allowed on RC queue pairs
  bool on_datagrams;  ///< allowed on UD and RD queue pairs
};

/// The facts of an opcode value as it stands on the wire; null for those not spoken here.
const OpcodeFacts* find_opcode(uint8_t value);
inline const OpcodeFacts& facts_of(Opcode opcode) {
  return *find_opcode(static_cast<uint8_t>(opcode));
}

/// The opcode of the message that a work request sends. Not of requests that send nothing.
Opcode opcode_of(WrOpcode request, bool solicited);

/// RDMAP's control octet: version in the top two bits, opcode in the low four.
constexpr uint8_t control_octet(Opcode opcode) {
  return static_cast<uint8_t>(kVersion << 6 | static_cast<uint8_t>(opcode));
}
constexpr uint8_t version_of(uint8_t control) { return control >> 6; }
constexpr uint8_t reserved_of(uint8_t control) { return (control >> 4) & 3; }
constexpr uint8_t opcode_of(uint8_t control) { return control & 15; }

}  // namespace diwarp::rdmap
