// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.h"

#include <array>

#include "support/catch.h"

using namespace diwarp;

// The key and the messages are those of the appendix of "SipHash: a fast short-input PRF", whose
// example is the one of 15 bytes; the others stand in the authors' list of 64.
TEST_CASE("SipHash-2-4 gives what its authors publish") {
  const SipKey key{0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
  std::array<std::byte, 64> message;
  for (size_t i = 0; i < message.size(); ++i) message[i] = static_cast<std::byte>(i);
  const auto of = [&](size_t length) { return siphash(key, ConstBytes(message).first(length)); };
  CHECK(of(0) == 0x726fdb47dd0e0e31U);
  CHECK(of(1) == 0x74f839c593dc67fdU);
  CHECK(of(7) == 0xab0200f58b01d137U);
  CHECK(of(8) == 0x93f5f5799a932462U);
  CHECK(of(15) == 0xa129ca6149be45e5U);
  CHECK(of(63) == 0x958a324ceb064572U);
}

TEST_CASE("each key of SipHash that is drawn is another") {
  const SipKey one = random_sip_key();
  const SipKey other = random_sip_key();
  CHECK(one.first != other.first);
  CHECK(one.second != other.second);
}
