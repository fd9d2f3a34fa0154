// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>

namespace diwarp::test {

/// An address of loopback that is this process's. Devices of one address look for each other, those
/// of other tests included.
inline std::string own_loopback() {
  const auto pid = static_cast<uint32_t>(::getpid());
  return "127." + std::to_string(64 + pid / 65536 % 64) + "." + std::to_string(pid / 256 % 256) +
         "." + std::to_string(pid % 256);
}

}  // namespace diwarp::test
