// SPDX-License-Identifier: Apache-2.0
#include "diwarp/version.h"

namespace diwarp {

Version version() noexcept { return kHeaderVersion; }

std::string to_string(const Version& version) {
  return std::to_string(version.major) + '.' + std::to_string(version.minor) + '.' +
         std::to_string(version.patch);
}

}  // namespace diwarp
