// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

/// The messages that resolve a UD service: Sends to and from its UDP port, laid out as
/// docs/wire-format.md has it.
namespace diwarp::compat {

/// Sends with another Q_Key do not reach the resolver.
inline constexpr uint32_t kUdServiceKey = 0x72736c76;
inline constexpr size_t kUdHeaderBytes = 24;
/// The API has a byte for the length.
inline constexpr size_t kMaxUdPrivateData = 255;
/// Of every request, whatever private data it has: no answer is longer.
inline constexpr size_t kUdRequestBytes = 280;
static_assert(kUdHeaderBytes + kMaxUdPrivateData <= kUdRequestBytes);

/// What an answer says, with the values of InfiniBand's service ID resolution.
enum class UdStatus : uint8_t { accepted = 0, rejected = 2 };

struct UdRequestMessage {
  uint64_t number = 0;  ///< random: the requester knows its answer by it
  std::vector<std::byte> private_data = {};
};

struct UdAnswerMessage {
  uint64_t number = 0;  ///< the request's
  UdStatus status = UdStatus::rejected;
  uint32_t queue_pair = 0;  ///< 24 bits; rejected: 0
  uint32_t q_key = 0;       ///< rejected: 0
  std::vector<std::byte> private_data = {};
};

/// Private data that are longer than the most are cut.
std::vector<std::byte> encode(const UdRequestMessage& message);
std::vector<std::byte> encode(const UdAnswerMessage& message);

/// Nothing where the bytes are no such message.
std::optional<UdRequestMessage> parse_ud_request(std::span<const std::byte> bytes);
std::optional<UdAnswerMessage> parse_ud_answer(std::span<const std::byte> bytes);

}  // namespace diwarp::compat
