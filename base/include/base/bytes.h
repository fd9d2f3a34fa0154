// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

namespace diwarp {

using Bytes = std::span<std::byte>;
using ConstBytes = std::span<const std::byte>;

}  // namespace diwarp
