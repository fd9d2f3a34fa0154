// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
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

struct OpcodeInfo {
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

namespace table {

using enum Opcode;
inline constexpr bool yes = true;
inline constexpr bool no = false;

// clang-format off
inline constexpr OpcodeInfo kInfo[] = {
    // what, name, tagged, queue, solicited, invalidates, one segment, its bytes, on streams, on datagrams
    {rdma_write,                "RDMA Write",                               yes, 0, no,  no,  no,  0,  yes, no},
    // guard(rows:read-request-queue): 1, no, no, yes, 28 => 0, no, no, yes, 28
    {read_request,              "RDMA Read Request",                        no,  1, no,  no,  yes, 28, yes, yes},
    {read_response,             "RDMA Read Response",                       yes, 0, no,  no,  no,  0,  yes, yes},
    {send,                      "Send",                                     no,  0, no,  no,  no,  0,  yes, yes},
    // guard(rows:opcode-table): 0, no, yes, no => 1, no, yes, no
    {send_invalidate,           "Send with Invalidate",                     no,  0, no,  yes, no,  0,  yes, yes},
    {send_solicited,            "Send with Solicited Event",                no,  0, yes, no,  no,  0,  yes, yes},
    {send_solicited_invalidate, "Send with Solicited Event and Invalidate", no,  0, yes, yes, no,  0,  yes, yes},
    {terminate,                 "Terminate",                                no,  2, no,  no,  yes, 0,  yes, no},
    {immediate,                 "Immediate Data",                           no,  0, no,  no,  yes, 8,  yes, no},
    {immediate_solicited,       "Immediate Data with Solicited Event",      no,  0, yes, no,  yes, 8,  yes, no},
    {atomic_request,            "Atomic Request",                           no,  1, no,  no,  yes, 52, yes, no},
    // guard(rows:opcodes-7306): 3 => 0
    {atomic_response,           "Atomic Response",                          no,  3, no,  no,  yes, 12, yes, no},
    {write_record,              "Write-Record",                             yes, 0, no,  no,  no,  0,  no,  yes},
};
// clang-format on

// The opcode field has four bits.
constexpr std::array<const OpcodeInfo*, 16> by_value() {
  std::array<const OpcodeInfo*, 16> table{};
  for (const OpcodeInfo& info : kInfo) table[static_cast<size_t>(info.opcode)] = &info;
  return table;
}

inline constexpr auto kByValue = by_value();

}  // namespace table

/// The facts of an opcode value as it stands on the wire; null for those not spoken here.
constexpr const OpcodeInfo* find_opcode(uint8_t value) {
  return value < table::kByValue.size() ? table::kByValue[value] : nullptr;
}
constexpr const OpcodeInfo& info_of(Opcode opcode) {
  return *table::kByValue[static_cast<uint8_t>(opcode)];
}

/// The opcode of the message that a work request sends. Not of requests that send nothing.
constexpr Opcode opcode_of(WrOpcode request, bool solicited) {
  using enum Opcode;
  switch (request) {
    case WrOpcode::send:
      return solicited ? send_solicited : send;  // guard(rows:send-opcodes): => return send;
    // guard(rows:send-opcodes): => return send_invalidate;
    case WrOpcode::send_with_invalidate:
      return solicited ? send_solicited_invalidate : send_invalidate;
    case WrOpcode::immediate:
      return solicited ? immediate_solicited : immediate;
    case WrOpcode::rdma_write:
      return rdma_write;
    case WrOpcode::write_record:
      return write_record;
    case WrOpcode::rdma_read:
    case WrOpcode::rdma_read_with_invalidate:
      return read_request;
    default:
      return atomic_request;
  }
}

/// RDMAP's control octet: version in the top two bits, opcode in the low four.
constexpr uint8_t control_octet(Opcode opcode) {
  return static_cast<uint8_t>(kVersion << 6 | static_cast<uint8_t>(opcode));
}
constexpr uint8_t version_of(uint8_t control) { return control >> 6; }
constexpr uint8_t reserved_of(uint8_t control) { return (control >> 4) & 3; }
constexpr uint8_t opcode_of(uint8_t control) { return control & 15; }

}  // namespace diwarp::rdmap
