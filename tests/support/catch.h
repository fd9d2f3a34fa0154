// SPDX-License-Identifier: Apache-2.0
#pragma once

// Catch2, version 2 or 3, by the names of version 3: the one place in C++ that tells them apart.
// Its counterpart for CMake is cmake/DiwarpCatch.cmake.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#include <string>

namespace Catch {

using Detail::Approx;

namespace Matchers {

inline auto ContainsSubstring(const std::string& text) { return Contains(text); }

}  // namespace Matchers
}  // namespace Catch
#endif
