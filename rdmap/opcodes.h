// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
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

/// The treatment of a message by its receiver. The checks of a segment and the queue pairs tell
/// messages apart by it, so that a further opcode of a type needs nothing but its row.
enum class MessageType : uint8_t {
  write,
  read_request,
  read_response,
  send,
  terminate,
  immediate,
  atomic_request,
  atomic_response,
  write_record,
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
  MessageType type;
  bool tagged;
  uint32_t queue_number;
  bool solicited;
  bool invalidates;   ///< carries the STag to invalidate
  bool one_segment;   ///< all that follows the DDP header is `body_bytes`
  size_t body_bytes;  ///< where one_segment; Terminate's vary (0)
  bool on_streams;    ///< allowed on RC queue pairs
  bool on_datagrams;  ///< allowed on UD and RD queue pairs
};

namespace table {

using enum Opcode;
inline constexpr bool yes = true;
inline constexpr bool no = false;

// clang-format off
inline constexpr OpcodeInfo kOpcodes[] = {
    // opcode, name, type, tagged, queue, solicited, invalidates, one segment, its bytes, on streams, on datagrams
    {rdma_write,                "RDMA Write",                               MessageType::write,           yes, 0, no,  no,  no,  0,  yes, no},
    // guard(rows:read-request-queue): 1, no, no, yes, 28 => 0, no, no, yes, 28
    {read_request,              "RDMA Read Request",                        MessageType::read_request,    no,  1, no,  no,  yes, 28, yes, yes},
    {read_response,             "RDMA Read Response",                       MessageType::read_response,   yes, 0, no,  no,  no,  0,  yes, yes},
    {send,                      "Send",                                     MessageType::send,            no,  0, no,  no,  no,  0,  yes, yes},
    // guard(rows:opcode-table): 0, no, yes, no => 1, no, yes, no
    {send_invalidate,           "Send with Invalidate",                     MessageType::send,            no,  0, no,  yes, no,  0,  yes, yes},
    {send_solicited,            "Send with Solicited Event",                MessageType::send,            no,  0, yes, no,  no,  0,  yes, yes},
    {send_solicited_invalidate, "Send with Solicited Event and Invalidate", MessageType::send,            no,  0, yes, yes, no,  0,  yes, yes},
    {terminate,                 "Terminate",                                MessageType::terminate,       no,  2, no,  no,  yes, 0,  yes, no},
    {immediate,                 "Immediate Data",                           MessageType::immediate,       no,  0, no,  no,  yes, 8,  yes, no},
    {immediate_solicited,       "Immediate Data with Solicited Event",      MessageType::immediate,       no,  0, yes, no,  yes, 8,  yes, no},
    {atomic_request,            "Atomic Request",                           MessageType::atomic_request,  no,  1, no,  no,  yes, 52, yes, no},
    // guard(rows:opcodes-7306): 3 => 0
    {atomic_response,           "Atomic Response",                          MessageType::atomic_response, no,  3, no,  no,  yes, 12, yes, no},
    {write_record,              "Write-Record",                             MessageType::write_record,    yes, 0, no,  no,  no,  0,  no,  yes},
};
// clang-format on

// The opcode field has four bits.
constexpr std::array<const OpcodeInfo*, 16> by_value() {
  std::array<const OpcodeInfo*, 16> table{};
  for (const OpcodeInfo& info : kOpcodes) table[static_cast<size_t>(info.opcode)] = &info;
  return table;
}

inline constexpr auto kByValue = by_value();

}  // namespace table

/// The row of an opcode value as it stands on the wire; null for those not spoken here.
constexpr const OpcodeInfo* find_opcode(uint8_t value) {
  return value < table::kByValue.size() ? table::kByValue[value] : nullptr;
}
constexpr const OpcodeInfo& info_of(Opcode opcode) {
  return *table::kByValue[static_cast<uint8_t>(opcode)];
}

/// The operands of a work request besides its local buffers.
enum class Operands : uint8_t {
  none = 0,
  remote_memory = 1,
  immediate = 2,           ///< the message is nothing else
  optional_immediate = 4,  ///< over datagrams
  invalidate_stag = 8,
  atomic = 16,
  binding = 32,
  read_limits = 64,  ///< over datagrams
};

}  // namespace diwarp::rdmap

namespace diwarp {
template <>
inline constexpr bool kIsFlags<rdmap::Operands> = true;
}  // namespace diwarp

namespace diwarp::rdmap {

/// Which local buffers a work request may have.
enum class SgeRule : uint8_t {
  none,
  any,
  at_most_one,  ///< over streams; any over datagrams
  one,
  one_of_8_bytes,
};

struct WrInfo {
  WrOpcode request;
  WcOpcode completion;
  Opcode opcode;     ///< of the message, if one is sent
  Opcode solicited;  ///< the same where a solicited event is asked for
  Operands operands;
  SgeRule sges;
  bool responded;         ///< done when the peer's response has come (Reads and atomics)
  bool local;             ///< nothing is sent
  bool gathers;           ///< its SGEs are read, else they are written (or there are none)
  bool invalidates_sink;  ///< of its SGE, when it is done
  bool on_streams;
  bool on_datagrams;

  constexpr bool takes(Operands wanted) const { return has(operands, wanted); }
  constexpr bool takes_immediate() const {
    return takes(Operands::immediate) || takes(Operands::optional_immediate);
  }
};

namespace table {

inline constexpr Operands kMessageOperands = Operands::optional_immediate;
inline constexpr Operands kRecordOperands = Operands::remote_memory | Operands::optional_immediate;
inline constexpr Operands kInvalidateOperands =
    Operands::invalidate_stag | Operands::optional_immediate;
inline constexpr Operands kReadOperands = Operands::remote_memory | Operands::read_limits;
inline constexpr Operands kAtomicOperands = Operands::remote_memory | Operands::atomic;

// clang-format off
inline constexpr WrInfo kWorkRequests[] = {
    // request, completion, opcode, opcode if solicited, operands, SGEs, responded, local, gathers, invalidates its sink,
    // on streams, on datagrams
    // guard(rows:send-opcodes): send_solicited, kMessageOperands => send, kMessageOperands
    {WrOpcode::send,                      WcOpcode::send,             send,            send_solicited,            kMessageOperands,          SgeRule::any,            no,  no,  yes, no,  yes, yes},
    // guard(rows:send-opcodes): send_solicited_invalidate, kInvalidateOperands => send_invalidate, kInvalidateOperands
    {WrOpcode::send_with_invalidate,      WcOpcode::send,             send_invalidate, send_solicited_invalidate, kInvalidateOperands,       SgeRule::any,            no,  no,  yes, no,  yes, yes},
    {WrOpcode::rdma_write,                WcOpcode::rdma_write,       rdma_write,      rdma_write,                Operands::remote_memory,   SgeRule::any,            no,  no,  yes, no,  yes, no},
    {WrOpcode::rdma_read,                 WcOpcode::rdma_read,        read_request,    read_request,              kReadOperands,             SgeRule::at_most_one,    yes, no,  no,  no,  yes, yes},
    {WrOpcode::rdma_read_with_invalidate, WcOpcode::rdma_read,        read_request,    read_request,              Operands::remote_memory,   SgeRule::one,            yes, no,  no,  yes, yes, no},
    {WrOpcode::immediate,                 WcOpcode::immediate,        immediate,       immediate_solicited,       Operands::immediate,       SgeRule::none,           no,  no,  no,  no,  yes, no},
    {WrOpcode::fetch_add,                 WcOpcode::fetch_add,        atomic_request,  atomic_request,            kAtomicOperands,           SgeRule::one_of_8_bytes, yes, no,  no,  no,  yes, no},
    {WrOpcode::compare_swap,              WcOpcode::compare_swap,     atomic_request,  atomic_request,            kAtomicOperands,           SgeRule::one_of_8_bytes, yes, no,  no,  no,  yes, no},
    {WrOpcode::swap,                      WcOpcode::swap,             atomic_request,  atomic_request,            kAtomicOperands,           SgeRule::one_of_8_bytes, yes, no,  no,  no,  yes, no},
    {WrOpcode::local_invalidate,          WcOpcode::local_invalidate, {},              {},                        Operands::invalidate_stag, SgeRule::none,           no,  yes, no,  no,  yes, yes},
    {WrOpcode::bind_window,               WcOpcode::bind_window,      {},              {},                        Operands::binding,         SgeRule::none,           no,  yes, no,  no,  yes, yes},
    {WrOpcode::register_memory,           WcOpcode::register_memory,  {},              {},                        Operands::binding,         SgeRule::none,           no,  yes, no,  no,  yes, yes},
    {WrOpcode::write_record,              WcOpcode::write_record,     write_record,    write_record,              kRecordOperands,           SgeRule::any,            no,  no,  yes, no,  no,  yes},
};
// clang-format on

constexpr bool requests_in_order() {
  for (size_t i = 0; i < std::size(kWorkRequests); ++i)
    if (static_cast<size_t>(kWorkRequests[i].request) != i) return false;
  return true;
}
static_assert(requests_in_order());

}  // namespace table

constexpr const WrInfo& info_of(WrOpcode request) {
  return table::kWorkRequests[static_cast<size_t>(request)];
}

/// The opcode of the message that a work request sends. Not of requests that send nothing.
constexpr Opcode opcode_of(WrOpcode request, bool solicited) {
  const WrInfo& info = info_of(request);
  return solicited ? info.solicited : info.opcode;
}
constexpr bool is_read(WrOpcode request) { return info_of(request).opcode == Opcode::read_request; }
constexpr bool is_record(WrOpcode request) {
  return info_of(request).opcode == Opcode::write_record;
}

/// RDMAP's control octet: version in the top two bits, opcode in the low four.
constexpr uint8_t control_octet(Opcode opcode) {
  return static_cast<uint8_t>(kVersion << 6 | static_cast<uint8_t>(opcode));
}
constexpr uint8_t version_of(uint8_t control) { return control >> 6; }
constexpr uint8_t reserved_of(uint8_t control) { return (control >> 4) & 3; }
constexpr uint8_t opcode_of(uint8_t control) { return control & 15; }

}  // namespace diwarp::rdmap
