// SPDX-License-Identifier: Apache-2.0
#include "base/siphash.h"

#include <bit>
#include <cstddef>

#include "base/random.h"

namespace diwarp {

namespace {

constexpr size_t kWordBytes = 8;
constexpr int kWordRounds = 2;
constexpr int kFinalRounds = 4;

/// The bytes, at most eight, as a little-endian number.
uint64_t load_little(ConstBytes bytes) {
  uint64_t value = 0;
  for (size_t i = bytes.size(); i != 0; --i)
    value = value << 8 | std::to_integer<uint64_t>(bytes[i - 1]);
  return value;
}

/// The four words of state, which begin as the key and "somepseudorandomlygeneratedbytes".
struct State {
  explicit State(const SipKey& key)
      : v0(key.first ^ 0x736f6d6570736575U),
        v1(key.second ^ 0x646f72616e646f6dU),
        v2(key.first ^ 0x6c7967656e657261U),
        v3(key.second ^ 0x7465646279746573U) {}

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      v0 += v1;
      v2 += v3;
      v1 = std::rotl(v1, 13) ^ v0;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 = std::rotl(v0, 32);
      v2 += v1;
      v0 += v3;
      v1 = std::rotl(v1, 17) ^ v2;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 = std::rotl(v2, 32);
    }
  }

  void take(uint64_t word) {
    v3 ^= word;
    rounds(kWordRounds);
    v0 ^= word;
  }

  uint64_t finish() {
    v2 ^= 0xff;
    rounds(kFinalRounds);
    return v0 ^ v1 ^ v2 ^ v3;
  }

  uint64_t v0, v1, v2, v3;
};

}  // namespace

uint64_t siphash(const SipKey& key, ConstBytes message) {
  State state(key);
  const uint64_t length = message.size();
  for (; message.size() >= kWordBytes; message = message.subspan(kWordBytes))
    state.take(load_little(message.first(kWordBytes)));
  state.take(length << 56 | load_little(message));
  return state.finish();
}

SipKey random_sip_key() {
  SipKey key;
  system_random(std::as_writable_bytes(std::span(&key, 1)));
  return key;
}

}  // namespace diwarp
