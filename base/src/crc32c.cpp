// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <array>

namespace diwarp {
namespace {

struct Available {
  std::array<Crc32cBackend, 3> backends{};
  size_t count = 0;

  Available() {
#if defined(DIWARP_HAVE_ISAL)
    add({"isal", &crc32c_isal_update});
#endif
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) add({"sse4.2", &crc32c_sse42_update});
#endif
    add({"table", &crc32c_table_update});
  }

  void add(Crc32cBackend backend) { backends[count++] = backend; }
};

}  // namespace

std::span<const Crc32cBackend> crc32c_backends() {
  static const Available available;
  return {available.backends.data(), available.count};
}

const char* crc32c_backend() { return crc32c_backends().front().name; }

uint32_t crc32c_update(uint32_t state, ConstBytes data) {
  static const auto update = crc32c_backends().front().update;
  return update(state, data);
}

}  // namespace diwarp
