// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

/// The numbers of an association's first datagrams, from docs/wire-format.md and the paper on
/// SipHash (Aumasson, Bernstein 2012), without the library's own code.
namespace diwarp::test {

/// SipHash-2-4 of 8 bytes.
inline uint64_t sip_2_4(uint64_t key0, uint64_t key1, uint64_t word) {
  uint64_t a = key0 ^ 0x736F6D6570736575;
  uint64_t b = key1 ^ 0x646F72616E646F6D;
  uint64_t c = key0 ^ 0x6C7967656E657261;
  uint64_t d = key1 ^ 0x7465646279746573;
  const auto mix = [&](int rounds) {
    for (; rounds > 0; --rounds) {
      a += b, b = std::rotl(b, 13) ^ a, a = std::rotl(a, 32);
      c += d, d = std::rotl(d, 16) ^ c;
      a += d, d = std::rotl(d, 21) ^ a;
      c += b, b = std::rotl(b, 17) ^ c, c = std::rotl(c, 32);
    }
  };
  for (const uint64_t block : {word, uint64_t{8} << 56}) {  // the second holds the length alone
    d ^= block;
    mix(2);
    a ^= block;
  }
  c ^= 0xFF;
  mix(4);
  return a ^ b ^ c ^ d;
}

/// The two names of one end of an association.
struct EndName {
  uint32_t incarnation = 0;
  uint32_t epoch = 0;
};

/// The number of the first datagram from `sender` to `receiver`.
inline uint32_t first_number(const EndName& sender, const EndName& receiver) {
  uint64_t label = 0;  // its first byte is the lowest
  const std::string_view text = "sequence";
  for (size_t i = text.size(); i-- != 0;) label = label << 8 | static_cast<uint8_t>(text[i]);
  return static_cast<uint32_t>(sip_2_4(uint64_t{sender.incarnation} << 32 | sender.epoch,
                                       uint64_t{receiver.incarnation} << 32 | receiver.epoch,
                                       label));
}

}  // namespace diwarp::test
