// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"
#include "crc32c_powers.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace diwarp {
namespace {

#define DIWARP_WIDE __attribute__((target("avx512f,avx512vl,vpclmulqdq,pclmul,sse4.2")))
#define DIWARP_WIDE_INLINE inline __attribute__((always_inline)) DIWARP_WIDE

constexpr size_t kVector = 64;           // bytes
constexpr size_t kStride = 4 * kVector;  // four chains hide the multiplications' latency

template <size_t kBits>
inline constexpr auto kMultiplier = static_cast<long long>(crc32c_multiplier(kBits));

/// The factors that move each of four 128-bit parts `kBytes` towards the beginning.
template <size_t kBytes>
DIWARP_WIDE_INLINE __m512i distance() {
  constexpr long long kLow = kMultiplier<8 * kBytes + 64>;
  constexpr long long kHigh = kMultiplier<8 * kBytes>;
  return _mm512_set_epi64(kHigh, kLow, kHigh, kLow, kHigh, kLow, kHigh, kLow);
}

DIWARP_WIDE_INLINE __m512i load(const std::byte* at) { return _mm512_loadu_si512(at); }

/// `vector`, moved by `distance`, plus `next`.
DIWARP_WIDE_INLINE __m512i fold(__m512i vector, __m512i distance, __m512i next) {
  constexpr int kXorOfThree = 0x96;
  const __m512i low = _mm512_clmulepi64_epi128(vector, distance, 0x00);
  const __m512i high = _mm512_clmulepi64_epi128(vector, distance, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, kXorOfThree);
}

/// The state after the 64 bytes that `vector` stands for.
DIWARP_WIDE_INLINE uint32_t reduce(__m512i vector) {
  // The first three parts move to where the last one is; that one stays.
  const __m512i distances =
      _mm512_set_epi64(0, 0, kMultiplier<128>, kMultiplier<192>, kMultiplier<256>, kMultiplier<320>,
                       kMultiplier<384>, kMultiplier<448>);
  constexpr __mmask8 kLastPart = 0xC0;
  const __m512i parts = fold(vector, distances, _mm512_maskz_mov_epi64(kLastPart, vector));
  // The intrinsics for halves read what GCC 12 takes for uninitialised.
  const __m256i two = __builtin_shufflevector(parts, parts, 0, 1, 2, 3) ^
                      __builtin_shufflevector(parts, parts, 4, 5, 6, 7);
  const __m128i one =
      __builtin_shufflevector(two, two, 0, 1) ^ __builtin_shufflevector(two, two, 2, 3);
  const uint64_t state = _mm_crc32_u64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(one)));
  return static_cast<uint32_t>(
      _mm_crc32_u64(state, static_cast<uint64_t>(_mm_extract_epi64(one, 1))));
}

/// At least one stride.
DIWARP_WIDE_INLINE __m512i fold_strides(uint32_t state, const std::byte*& at, size_t& size) {
  const __m512i stride = distance<kStride>();
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i a = _mm512_xor_si512(load(at), start);
  __m512i b = load(at + kVector);
  __m512i c = load(at + 2 * kVector);
  __m512i d = load(at + 3 * kVector);
  for (at += kStride, size -= kStride; size >= kStride; at += kStride, size -= kStride) {
    a = fold(a, stride, load(at));
    b = fold(b, stride, load(at + kVector));
    c = fold(c, stride, load(at + 2 * kVector));
    d = fold(d, stride, load(at + 3 * kVector));
  }
  const __m512i cd = fold(c, distance<kVector>(), d);
  return fold(a, distance<3 * kVector>(), fold(b, distance<2 * kVector>(), cd));
}

}  // namespace

/// Whole vectors are folded into one by carry-less multiplication: the one that remains has the
/// same remainder. The bytes before them go one crc32 instruction a word, which overlaps with the
/// rest.
DIWARP_WIDE uint32_t crc32c_avx512_update(uint32_t state, ConstBytes data) {
  const size_t odd = data.size() % kVector;
  state = crc32c_sse42_update(state, data.first(odd));
  const std::byte* at = data.data() + odd;
  size_t size = data.size() - odd;
  if (size == 0) return state;
  __m512i folded;
  if (size >= kStride) {
    folded = fold_strides(state, at, size);
  } else {
    const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
    folded = _mm512_xor_si512(load(at), start);
    at += kVector;
    size -= kVector;
  }
  for (; size != 0; at += kVector, size -= kVector)
    folded = fold(folded, distance<kVector>(), load(at));
  return reduce(folded);
}

}  // namespace diwarp

#endif
