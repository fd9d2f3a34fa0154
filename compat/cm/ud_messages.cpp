// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/ud_messages.h"

#include <endian.h>

#include <algorithm>
#include <cstring>

namespace diwarp::compat {
namespace {

constexpr uint32_t kMagic = 0x64775544;  // "dwUD"
constexpr uint8_t kVersion = 1;
enum : uint8_t { kRequest = 1, kAnswer = 2 };

/// All integers are in network byte order.
struct Header {
  uint32_t magic;
  uint8_t version;
  uint8_t type;
  uint8_t status;
  uint8_t private_data_bytes;
  uint64_t number;
  uint32_t queue_pair;
  uint32_t q_key;
};
static_assert(sizeof(Header) == kUdHeaderBytes);
static_assert(offsetof(Header, private_data_bytes) == 7 && offsetof(Header, number) == 8);
static_assert(offsetof(Header, queue_pair) == 16 && offsetof(Header, q_key) == 20);

std::vector<std::byte> joined(Header header, std::span<const std::byte> private_data) {
  private_data = private_data.first(std::min(private_data.size(), kMaxUdPrivateData));
  header.magic = htobe32(kMagic);
  header.version = kVersion;
  header.private_data_bytes = static_cast<uint8_t>(private_data.size());
  std::vector<std::byte> bytes(sizeof header + private_data.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::copy(private_data.begin(), private_data.end(), bytes.begin() + sizeof header);
  return bytes;
}

/// The header of a message of this type that is long enough for its private data.
std::optional<Header> parse_header(std::span<const std::byte> bytes, uint8_t type) {
  if (bytes.size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (be32toh(header.magic) != kMagic || header.version != kVersion || header.type != type)
    return std::nullopt;
  if (bytes.size() < sizeof header + header.private_data_bytes) return std::nullopt;
  return header;
}

std::vector<std::byte> private_data_of(std::span<const std::byte> bytes, const Header& header) {
  const auto data = bytes.subspan(sizeof header, header.private_data_bytes);
  return {data.begin(), data.end()};
}

}  // namespace

std::vector<std::byte> encode(const UdRequestMessage& message) {
  Header header{};
  header.type = kRequest;
  header.number = htobe64(message.number);
  std::vector<std::byte> bytes = joined(header, message.private_data);
  bytes.resize(kUdRequestBytes);
  return bytes;
}

std::vector<std::byte> encode(const UdAnswerMessage& message) {
  Header header{};
  header.type = kAnswer;
  header.status = static_cast<uint8_t>(message.status);
  header.number = htobe64(message.number);
  header.queue_pair = htobe32(message.queue_pair);
  header.q_key = htobe32(message.q_key);
  return joined(header, message.private_data);
}

std::optional<UdRequestMessage> parse_ud_request(std::span<const std::byte> bytes) {
  if (bytes.size() != kUdRequestBytes) return std::nullopt;
  const auto header = parse_header(bytes, kRequest);
  if (!header || header->status != 0 || header->queue_pair != 0 || header->q_key != 0)
    return std::nullopt;
  return UdRequestMessage{be64toh(header->number), private_data_of(bytes, *header)};
}

std::optional<UdAnswerMessage> parse_ud_answer(std::span<const std::byte> bytes) {
  const auto header = parse_header(bytes, kAnswer);
  if (!header || bytes.size() != sizeof *header + header->private_data_bytes) return std::nullopt;
  const auto status = static_cast<UdStatus>(header->status);
  const uint32_t queue_pair = be32toh(header->queue_pair);
  const bool accepted = status == UdStatus::accepted && queue_pair != 0 && queue_pair <= 0xffffff;
  const bool rejected = status == UdStatus::rejected && queue_pair == 0 && header->q_key == 0;
  if (!accepted && !rejected) return std::nullopt;
  return UdAnswerMessage{be64toh(header->number), status, queue_pair, be32toh(header->q_key),
                         private_data_of(bytes, *header)};
}

}  // namespace diwarp::compat
