// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include <diwarp/verbs.h>

namespace diwarp::fuzz {

/// The messages that one end sent, and those of its peer that it was delivered. The first bytes of
/// one name it.
class DatagramMessages {
 public:
  /// `seed`: ends with different ones send different bytes.
  explicit DatagramMessages(uint8_t seed) : seed_(seed) {}

  std::vector<std::byte> contents_of(uint32_t id, size_t length) const;
  void sent(uint32_t id, size_t length, const Address& to) { sent_.emplace(id, Sent{length, to}); }
  void succeeded(uint32_t id) { succeeded_.insert(id); }
  /// These bytes came from `peer`. `ordered`: messages may not overtake each other.
  void delivered(std::span<const std::byte> bytes, const DatagramMessages& peer, bool ordered);
  /// What succeeded was delivered to `peer`, who is at `address`.
  void check_delivered(const DatagramMessages& peer, const Address& address) const;

 private:
  struct Sent {
    size_t length;
    Address to;
  };

  const uint8_t seed_;
  std::map<uint32_t, Sent> sent_;
  std::set<uint32_t> succeeded_;
  std::set<uint32_t> delivered_;  // of the peer's
};

}  // namespace diwarp::fuzz
