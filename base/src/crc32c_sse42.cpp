// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "base/crc32c.h"

#if defined(__x86_64__)

namespace diwarp {
namespace {

template <class T>
T take(const std::byte* source) {
  T value;
  std::memcpy(&value, source, sizeof value);
  return value;
}

}  // namespace

__attribute__((target("sse4.2"))) uint32_t crc32c_sse42_update(uint32_t state, ConstBytes data) {
  const std::byte* at = data.data();
  const size_t size = data.size();
  uint64_t wide = state;
  size_t words = size / 8;
  for (; words >= 4; words -= 4, at += 32) {
    wide = __builtin_ia32_crc32di(wide, take<uint64_t>(at));
    wide = __builtin_ia32_crc32di(wide, take<uint64_t>(at + 8));
    wide = __builtin_ia32_crc32di(wide, take<uint64_t>(at + 16));
    wide = __builtin_ia32_crc32di(wide, take<uint64_t>(at + 24));
  }
  for (; words != 0; --words, at += 8) {
    wide = __builtin_ia32_crc32di(wide, take<uint64_t>(at));
  }
  state = static_cast<uint32_t>(wide);
  if ((size & 4) != 0) {
    state = __builtin_ia32_crc32si(state, take<uint32_t>(at));
    at += 4;
  }
  if ((size & 2) != 0) {
    state = __builtin_ia32_crc32hi(state, take<uint16_t>(at));
    at += 2;
  }
  if ((size & 1) != 0) state = __builtin_ia32_crc32qi(state, take<uint8_t>(at));
  return state;
}

}  // namespace diwarp

#endif
