// SPDX-License-Identifier: Apache-2.0
#include "rdmap/opcodes.h"

#include <array>
#include <cstddef>

namespace diwarp::rdmap {
namespace {

using enum Opcode;
constexpr bool yes = true;
constexpr bool no = false;

// clang-format off
constexpr OpcodeFacts kFacts[] = {
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
constexpr std::array<const OpcodeFacts*, 16> by_value() {
  std::array<const OpcodeFacts*, 16> table{};
  for (const OpcodeFacts& facts : kFacts) table[static_cast<size_t>(facts.opcode)] = &facts;
  return table;
}

constexpr auto kByValue = by_value();

}  // namespace

const OpcodeFacts* find_opcode(uint8_t value) {
  return value < kByValue.size() ? kByValue[value] : nullptr;
}

Opcode opcode_of(WrOpcode request, bool solicited) {
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

}  // namespace diwarp::rdmap
