// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_order.h"
#include "base/bytes.h"

namespace diwarp {

/// One implementation of CRC32C (Castagnoli, RFC 3720 section 12.1). `update` carries the raw
/// state: it starts as all ones and is inverted at the end by the caller.
struct Crc32cBackend {
  const char* name;
  uint32_t (*update)(uint32_t state, ConstBytes data);
};

/// Those that work on this machine, in order of preference.
std::span<const Crc32cBackend> crc32c_backends();

/// The name of the one in use (for all but short data).
const char* crc32c_backend();

/// Portable: slicing by eight.
uint32_t crc32c_table_update(uint32_t state, ConstBytes data);
/// The processor's crc32 instruction; only where crc32c_backends() lists it.
uint32_t crc32c_sse42_update(uint32_t state, ConstBytes data);
/// Folding by carry-less multiplication, 64 bytes at a time (AVX-512 with VPCLMULQDQ); only where
/// crc32c_backends() lists it.
uint32_t crc32c_avx512_update(uint32_t state, ConstBytes data);
/// ISA-L's crc32_iscsi; only where crc32c_backends() lists it.
uint32_t crc32c_isal_update(uint32_t state, ConstBytes data);
namespace detail {

/// Whether this machine has the crc32 instruction. False before it was asked, which does no harm.
extern __attribute__((visibility("hidden"))) const bool crc32c_has_sse42;

/// Where folding begins to pay for what it takes to begin and to end: below, one crc32 instruction
/// per word is quicker (64 bytes: 7 ns beside 8 and 14; 192 bytes: 19 beside 12 and 28).
inline constexpr size_t kCrc32cAvx512Pays = 128;

uint32_t crc32c_update_long(uint32_t state, ConstBytes data);

}  // namespace detail

/// The quickest for this length.
inline uint32_t crc32c_update(uint32_t state, ConstBytes data) {
  return detail::crc32c_has_sse42 && data.size() < detail::kCrc32cAvx512Pays
             ? crc32c_sse42_update(state, data)
             : detail::crc32c_update_long(state, data);
}

/// CRC32C of bytes that come in pieces.
class Crc32c {
 public:
  void update(ConstBytes data) { state_ = crc32c_update(state_, data); }
  uint32_t value() const { return ~state_; }

 private:
  uint32_t state_ = ~uint32_t{0};
};

/// CRC32C of one buffer: 0xE3069283 for the digits "123456789".
inline uint32_t crc32c(ConstBytes data) { return ~crc32c_update(~uint32_t{0}, data); }

/// A CRC32C on the wire: the coefficient of x^31 is the first bit sent, which makes the value's low
/// byte the first (RFC 3720 section 12.1 and appendix B.4, RFC 5044 section 4.4): 32 zero bytes
/// give aa 36 91 8a.
inline void store_crc32c(std::byte* target, uint32_t crc) {
  store_be<uint32_t>(target, __builtin_bswap32(crc));
}
inline uint32_t load_crc32c(const std::byte* source) {
  return __builtin_bswap32(load_be<uint32_t>(source));
}

}  // namespace diwarp
