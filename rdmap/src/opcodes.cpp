// SPDX-License-Identifier: Apache-2.0
#include "rdmap/opcodes.h"

#include <array>
#include <cstddef>

namespace diwarp::rdmap {
namespace {

// clang-format off
constexpr OpcodeFacts kFacts[] = {
    // opcode                           name                                       tagged  queue                solicited invalidates one_segment body on_datagrams
    {Opcode::rdma_write,                "RDMA Write",                               true,  0,                    false, false, false, 0,  false},
    {Opcode::read_request,              "RDMA Read Request",                        false, kRequestQueue,        false, false, true,  28, false},
    {Opcode::read_response,             "RDMA Read Response",                       true,  0,                    false, false, false, 0,  false},
    {Opcode::send,                      "Send",                                     false, kSendQueue,           false, false, false, 0,  true},
    {Opcode::send_invalidate,           "Send with Invalidate",                     false, kSendQueue,           false, true,  false, 0,  false},
    {Opcode::send_solicited,            "Send with Solicited Event",                false, kSendQueue,           true,  false, false, 0,  true},
    {Opcode::send_solicited_invalidate, "Send with Solicited Event and Invalidate", false, kSendQueue,           true,  true,  false, 0,  false},
    {Opcode::terminate,                 "Terminate",                                false, kTerminateQueue,      false, false, true,  0,  false},
    {Opcode::immediate,                 "Immediate Data",                           false, kSendQueue,           false, false, true,  8,  false},
    {Opcode::immediate_solicited,       "Immediate Data with Solicited Event",      false, kSendQueue,           true,  false, true,  8,  false},
    {Opcode::atomic_request,            "Atomic Request",                           false, kRequestQueue,        false, false, true,  52, false},
    {Opcode::atomic_response,           "Atomic Response",                          false, kAtomicResponseQueue, false, false, true,  12, false},
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

}  // namespace diwarp::rdmap
