// SPDX-License-Identifier: Apache-2.0
#include "rdmap/opcodes.h"

#include <cstddef>

namespace diwarp::rdmap {
namespace {

// clang-format off
constexpr OpcodeFacts kFacts[] = {
    // opcode                 name                    tagged QN solicited on_datagrams
    {Opcode::send,           "Send",                      false, 0, false, true},
    {Opcode::send_solicited, "Send with Solicited Event", false, 0, true,  true},
    {Opcode::terminate,      "Terminate",                 false, 2, false, false},
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
