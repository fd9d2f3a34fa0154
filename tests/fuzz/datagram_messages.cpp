// SPDX-License-Identifier: Apache-2.0
#include "fuzz/datagram_messages.h"

#include <algorithm>
#include <cstring>

#include "fuzz/input.h"

namespace diwarp::fuzz {

std::vector<std::byte> DatagramMessages::contents_of(uint32_t id, size_t length) const {
  std::vector<std::byte> bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<std::byte>(seed_ + id * 31 + i * 5);
  if (length >= sizeof id) std::memcpy(bytes.data(), &id, sizeof id);
  return bytes;
}

void DatagramMessages::delivered(std::span<const std::byte> bytes, const DatagramMessages& peer,
                                 bool ordered) {
  uint32_t id = 0;
  if (bytes.size() >= sizeof id) std::memcpy(&id, bytes.data(), sizeof id);
  const auto sent = peer.sent_.find(id);
  require(sent != peer.sent_.end() && sent->second.length == bytes.size(),
          "A message came that the honest peer did not send");
  require(std::ranges::equal(bytes, peer.contents_of(id, bytes.size())),
          "A message of the honest peer is damaged");
  const bool in_order = delivered_.empty() || *delivered_.rbegin() < id;
  require(!delivered_.contains(id), "A message was delivered twice");
  require(in_order || !ordered, "A message overtook another");
  delivered_.insert(id);
}

void DatagramMessages::check_delivered(const DatagramMessages& peer, const Address& address) const {
  for (const uint32_t id : succeeded_) {
    const auto sent = sent_.find(id);
    const bool to_peer = sent != sent_.end() && sent->second.to == address;
    require(!to_peer || peer.delivered_.contains(id), "A message succeeded that was not delivered");
  }
}

}  // namespace diwarp::fuzz
