// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "diwarp/export.h"

// The version of these headers. CMakeLists.txt reads the project's version here.
#define DIWARP_VERSION_MAJOR 0
#define DIWARP_VERSION_MINOR 1
#define DIWARP_VERSION_PATCH 0

namespace diwarp {

/// A version, ordered as releases are. While `major` is 0, another `minor` is another interface.
struct Version {
  uint32_t major = 0;
  uint32_t minor = 0;
  uint32_t patch = 0;
  friend constexpr auto operator<=>(const Version&, const Version&) = default;
};

/// The version that a program was compiled with.
inline constexpr Version kHeaderVersion{DIWARP_VERSION_MAJOR, DIWARP_VERSION_MINOR,
                                        DIWARP_VERSION_PATCH};

/// The version of the library that the program runs with.
DIWARP_EXPORT Version version() noexcept;

/// "0.1.0".
DIWARP_EXPORT std::string to_string(const Version& version);

}  // namespace diwarp
