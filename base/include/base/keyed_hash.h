// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "base/siphash.h"

namespace diwarp {

/// A hash for tables whose keys strangers choose, such as `KeyedHash<Address>`: without the SipKey
/// nobody can find keys that fall into the same bucket. For types whose value is their bytes.
template <class T>
class KeyedHash {
  static_assert(std::has_unique_object_representations_v<T>);

 public:
  explicit KeyedHash(const SipKey& key) : key_(key) {}

  size_t operator()(const T& value) const noexcept {
    return static_cast<size_t>(siphash(key_, std::as_bytes(std::span(&value, 1))));
  }

 private:
  SipKey key_;
};

}  // namespace diwarp
