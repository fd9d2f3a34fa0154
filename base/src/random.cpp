// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <sys/random.h>

#include <cerrno>

#include "diwarp/error.h"

namespace diwarp {

void system_random(Bytes target) {
  while (!target.empty()) {
    const ssize_t got = getrandom(target.data(), target.size(), 0);
    if (got >= 0) {
      target = target.subspan(static_cast<size_t>(got));
    } else if (errno != EINTR) {
      throw Error(std::error_code(errno, std::system_category()),
                  "The system gave no random bytes; allow the getrandom system call");
    }
  }
}

uint32_t system_random_u32() {
  uint32_t value = 0;
  system_random(std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

}  // namespace diwarp
