// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/byte_order.h"
#include "diwarp/types.h"

namespace diwarp::dgram {

/// An address as it is hashed with a key, with so many bytes after it: address (16 bytes, IPv4
/// filled up with zeros), family, purpose (one byte each), port (2), scope (4). Addresses that
/// differ in any of them have hashes of their own.
template <size_t Further>
class HashedAddress {
 public:
  HashedAddress(const Address& address, uint8_t purpose) {
    const auto bytes = std::as_bytes(address.bytes());
    std::copy(bytes.begin(), bytes.end(), bytes_.begin());
    bytes_[kFamilyAt] = static_cast<std::byte>(address.family());  // guard(read-progress)
    bytes_[kPurposeAt] = std::byte{purpose};                       // guard(dgram)
    store_be(&bytes_[kPortAt], address.port());                    // guard(reads)
    store_be(&bytes_[kScopeAt], address.scope_id());               // guard(read-progress)
  }

  /// The bytes after it, zeros at first.
  std::byte* further() { return &bytes_[kFurtherAt]; }
  const std::array<std::byte, 24 + Further>& bytes() const { return bytes_; }

 private:
  static constexpr size_t kFamilyAt = 16;
  static constexpr size_t kPurposeAt = 17;
  static constexpr size_t kPortAt = 18;
  static constexpr size_t kScopeAt = 20;
  static constexpr size_t kFurtherAt = 24;

  std::array<std::byte, kFurtherAt + Further> bytes_{};
};

}  // namespace diwarp::dgram
