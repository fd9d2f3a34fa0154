// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>

namespace diwarp {

// Before their initialisers ran these are false: then the other ways give the same result.
#if defined(__x86_64__)
const bool detail::crc32c_has_sse42 = __builtin_cpu_supports("sse4.2");
#else
constinit const bool detail::crc32c_has_sse42 = false;
#endif

namespace {

using detail::kCrc32cAvx512Pays;

#if defined(__x86_64__)
const bool& has_sse42 = detail::crc32c_has_sse42;
const bool has_avx512 = has_sse42 && __builtin_cpu_supports("pclmul") &&
                        __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("vpclmulqdq");
#else
constexpr bool has_sse42 = false;
constexpr bool has_avx512 = false;
#endif

#if defined(DIWARP_HAVE_ISAL)
constexpr bool has_isal = true;
#else
constexpr bool has_isal = false;
#endif

constexpr size_t kIsalPays = 256;
static_assert(kCrc32cAvx512Pays <= kIsalPays);

uint32_t update_best(uint32_t state, ConstBytes data) {
  if (has_avx512 && data.size() >= kCrc32cAvx512Pays) return crc32c_avx512_update(state, data);
  if (has_sse42 && (!has_isal || data.size() < kIsalPays)) return crc32c_sse42_update(state, data);
  return has_isal ? crc32c_isal_update(state, data) : crc32c_table_update(state, data);
}

struct Available {
  std::array<Crc32cBackend, 4> backends{};
  size_t count = 0;

  Available() {
    if (has_avx512) add({"avx512", &crc32c_avx512_update});
    if (has_isal) add({"isal", &crc32c_isal_update});
    if (has_sse42) add({"sse4.2", &crc32c_sse42_update});
    add({"table", &crc32c_table_update});
  }

  void add(Crc32cBackend backend) { backends[count++] = backend; }
};

}  // namespace

#if !defined(DIWARP_HAVE_ISAL)
uint32_t crc32c_isal_update(uint32_t state, ConstBytes data) {
  return crc32c_table_update(state, data);
}
#endif

#if !defined(__x86_64__)
uint32_t crc32c_sse42_update(uint32_t state, ConstBytes data) {
  return crc32c_table_update(state, data);
}
uint32_t crc32c_avx512_update(uint32_t state, ConstBytes data) {
  return crc32c_table_update(state, data);
}
#endif

std::span<const Crc32cBackend> crc32c_backends() {
  static const Available available;
  return {available.backends.data(), available.count};
}

const char* crc32c_backend() { return crc32c_backends().front().name; }

uint32_t detail::crc32c_update_long(uint32_t state, ConstBytes data) {
  return update_best(state, data);
}

}  // namespace diwarp
