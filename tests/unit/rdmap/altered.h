// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "wire/datagrams.h"

namespace Catch {
template <>
struct StringMaker<diwarp::Counter> {
  static std::string convert(diwarp::Counter counter) {
    return std::string(diwarp::Counters::name(counter));
  }
};
}  // namespace Catch

/// Datagrams that were right and have been changed.
namespace diwarp::test {

inline void put(std::vector<std::byte>& datagram, size_t offset, std::string_view digits) {
  const auto bytes = hex(digits);
  REQUIRE(offset + bytes.size() <= datagram.size());
  std::copy(bytes.begin(), bytes.end(), datagram.begin() + static_cast<std::ptrdiff_t>(offset));
}

/// The datagram with other bytes from `offset` on and the CRC that goes with them.
inline std::vector<std::byte> altered(std::vector<std::byte> datagram, size_t offset,
                                      std::string_view digits) {
  put(datagram, offset, digits);
  return sealed(std::move(datagram));
}

/// The datagram without the last `bytes` of what lies before its CRC, which fits again.
inline std::vector<std::byte> shortened(const std::vector<std::byte>& datagram, size_t bytes = 1) {
  return sealed({datagram.begin(), datagram.end() - static_cast<ptrdiff_t>(bytes)});
}

inline std::vector<std::byte> extended(std::vector<std::byte> datagram) {
  datagram.resize(datagram.size() + 1);
  return sealed(std::move(datagram));
}

inline bool accepted(ConstBytes datagram) { return !verdict_of(datagram).drop; }

inline Counter reason_of(ConstBytes datagram) {
  const Verdict verdict = verdict_of(datagram);
  REQUIRE(verdict.drop);
  return *verdict.drop;
}

inline void flip(std::vector<std::byte>& bytes, size_t bit) {
  bytes[bit / 8] ^= std::byte{0x80} >> (bit % 8);
}

}  // namespace diwarp::test
