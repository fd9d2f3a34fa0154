// SPDX-License-Identifier: Apache-2.0
#include "describe.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "base/byte_order.h"

namespace diwarp::explore {

namespace {

constexpr size_t kPrefix = 8;
constexpr size_t kRdHeader = 24;
constexpr size_t kImmediate = 8;

uint32_t word(ConstBytes bytes, size_t at) {
  return at + 4 <= bytes.size() ? load_be<uint32_t>(bytes.data() + at) : 0;
}

uint8_t byte(ConstBytes bytes, size_t at) {
  return at < bytes.size() ? static_cast<uint8_t>(bytes[at]) : uint8_t{0};
}

std::string segment(ConstBytes datagram) {
  constexpr std::array<std::string_view, 13> kOpcodes{
      "Write",     "Read Request", "Read Response", "Send",    "Send",    "Send",        "Send",
      "Terminate", "segment",      "segment",       "segment", "segment", "Write-Record"};
  const bool immediate = (byte(datagram, 1) & 1) != 0;
  const size_t at = kPrefix + kRdHeader + (immediate ? kImmediate : 0);
  const uint8_t opcode = byte(datagram, at + 1) & 15;
  const bool last = (byte(datagram, at) & 0x40) != 0;
  std::string text(opcode < kOpcodes.size() ? kOpcodes[opcode] : "segment");
  return text + (last ? ", last" : "");
}

std::string reliable(ConstBytes datagram) {
  constexpr std::array<std::string_view, 9> kKinds{
      "kind 0", "data", "skip", "failure", "acknowledgement", "probe", "refusal", "open", "reset"};
  const uint8_t kind = byte(datagram, kPrefix);
  std::string text(kind < kKinds.size() ? kKinds[kind] : "unknown");
  if (const uint32_t sequence = word(datagram, kPrefix + 16); sequence != 0)
    text += ' ' + std::to_string(sequence);
  if (kind == 1) text += " (" + segment(datagram) + ')';
  if (kind < 7) text += ", acknowledges " + std::to_string(word(datagram, kPrefix + 20));
  if (kind == 4 && datagram.size() > kPrefix + kRdHeader + 4) text += " and some that came early";
  return text;
}

}  // namespace

std::string describe(ConstBytes datagram) {
  const std::string size = ", " + std::to_string(datagram.size()) + " bytes";
  const uint8_t first = byte(datagram, 0);
  if (first >> 4 != 2) return "datagram" + size;
  const uint8_t datagram_class = first & 15;
  return (datagram_class == 1 ? reliable(datagram) : "control") + size;
}

}  // namespace diwarp::explore
