// SPDX-License-Identifier: Apache-2.0
#include "protocol.h"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace interop {
namespace {

constexpr uint32_t kMagic = 0x64697770;
constexpr std::array<std::string_view, 6> kOps{"send",      "send_solicited", "send_invalidate",
                                               "send_both", "write",          "read"};
constexpr std::array<std::string_view, 2> kActors{"client", "server"};
constexpr std::array<std::string_view, 8> kFaults{"none",        "wrong_stag", "out_of_bounds",
                                                  "before_base", "no_right",   "invalidated",
                                                  "no_receive",  "too_long"};

void put(std::span<std::byte> to, size_t at, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) {
    to[at + i] = static_cast<std::byte>((value >> (8 * (width - 1 - i))) & 0xff);
  }
}

uint64_t get(std::span<const std::byte> from, size_t at, size_t width) {
  uint64_t value = 0;
  for (size_t i = 0; i < width; ++i) value = value << 8 | std::to_integer<uint64_t>(from[at + i]);
  return value;
}

uint32_t get32(std::span<const std::byte> from, size_t at) {
  return static_cast<uint32_t>(get(from, at, 4));
}

template <size_t kCount>
uint8_t index_of(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) throw std::invalid_argument("unknown name: " + std::string(name));
  return static_cast<uint8_t>(found - names.begin());
}

}  // namespace

void encode(const Message& message, std::span<std::byte> bytes) {
  std::fill_n(bytes.begin(), kMessageSize, std::byte{0});
  put(bytes, 0, kMagic, 4);
  put(bytes, 4, static_cast<uint8_t>(message.type), 1);
  put(bytes, 5, static_cast<uint8_t>(message.op), 1);
  put(bytes, 6, static_cast<uint8_t>(message.actor), 1);
  put(bytes, 7, static_cast<uint8_t>(message.fault), 1);
  put(bytes, 8, message.size, 4);
  put(bytes, 12, message.seed, 4);
  put(bytes, 16, message.status, 4);
  put(bytes, 20, message.key, 4);
  put(bytes, 24, message.address, 8);
}

std::optional<Message> decode(std::span<const std::byte> bytes) {
  if (bytes.size() != kMessageSize || get32(bytes, 0) != kMagic) return std::nullopt;
  if (get(bytes, 5, 1) >= kOps.size() || get(bytes, 7, 1) >= kFaults.size()) return std::nullopt;
  return Message{.type = static_cast<Type>(get(bytes, 4, 1)),
                 .op = static_cast<Op>(get(bytes, 5, 1)),
                 .actor = static_cast<Actor>(get(bytes, 6, 1)),
                 .fault = static_cast<Fault>(get(bytes, 7, 1)),
                 .size = get32(bytes, 8),
                 .seed = get32(bytes, 12),
                 .status = get32(bytes, 16),
                 .key = get32(bytes, 20),
                 .address = get(bytes, 24, 8)};
}

void fill(std::span<std::byte> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = pattern(seed, i);
}

std::optional<size_t> first_difference(std::span<const std::byte> bytes, uint32_t seed) {
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != pattern(seed, i)) return i;
  }
  return std::nullopt;
}

bool is_send(Op op) { return op != Op::write && op != Op::read; }
bool is_solicited(Op op) { return op == Op::send_solicited || op == Op::send_both; }
bool invalidates(Op op) { return op == Op::send_invalidate || op == Op::send_both; }

Op parse_op(std::string_view name) { return static_cast<Op>(index_of(kOps, name)); }
Actor parse_actor(std::string_view name) { return static_cast<Actor>(index_of(kActors, name)); }
Fault parse_fault(std::string_view name) { return static_cast<Fault>(index_of(kFaults, name)); }
std::string name_of(Op op) { return std::string(kOps.at(static_cast<size_t>(op))); }

}  // namespace interop
