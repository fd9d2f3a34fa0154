// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace diwarp::rdmap {

inline constexpr uint8_t kVersion = 1;  // RV, RFC 5040 section 4.1

/// RDMAP opcodes (RFC 5040 figure 4) that this implementation speaks.
enum class Opcode : uint8_t {
  send = 3,
  send_solicited = 5,
  terminate = 7,
};

struct OpcodeFacts {
  Opcode opcode;
  std::string_view name;
  bool tagged;
  uint32_t queue_number;
  bool solicited;
  bool on_datagrams;  ///< allowed on UD queue pairs
};

/// The facts of an opcode value as it stands on the wire; null for those not spoken here.
const OpcodeFacts* find_opcode(uint8_t value);

/// RDMAP's control octet: version in the top two bits, opcode in the low four.
constexpr uint8_t control_octet(Opcode opcode) {
  return static_cast<uint8_t>(kVersion << 6 | static_cast<uint8_t>(opcode));
}
constexpr uint8_t version_of(uint8_t control) { return control >> 6; }
constexpr uint8_t reserved_of(uint8_t control) { return (control >> 4) & 3; }
constexpr uint8_t opcode_of(uint8_t control) { return control & 15; }

}  // namespace diwarp::rdmap
