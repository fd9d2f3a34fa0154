// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/probe.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "compat/common/error.h"

namespace diwarp::compat {
namespace {

// The values of Linux; older headers of the C library lack the names.
constexpr int kPopulateRead = 22;
constexpr int kPopulateWrite = 23;

/// 0, or an errno value.
int populate(void* address, size_t length, int advice) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(address);
  const uintptr_t first = begin / page * page;
  for (;;) {
    if (::madvise(reinterpret_cast<void*>(first), begin + length - first, advice) == 0) return 0;
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
}

/// Whether the kernel knows the advice: some memory of this thread's own is certainly there.
bool kernel_can_tell() {
  static const bool can = [] {
    std::array<char, 1> own{};
    return populate(own.data(), own.size(), kPopulateRead) == 0;
  }();
  return can;
}

}  // namespace

void check_memory(void* address, size_t length, bool must_be_writable) {
  refuse_if(reinterpret_cast<uintptr_t>(address) + length < length, EFAULT);
  if (!kernel_can_tell()) return;
  const int code = populate(address, length, must_be_writable ? kPopulateWrite : kPopulateRead);
  refuse_if(code != 0, code == EHWPOISON ? EIO : EFAULT);
}

}  // namespace diwarp::compat
