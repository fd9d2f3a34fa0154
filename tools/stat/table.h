// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stat/sample.h"

namespace diwarp::tools {

/// No line of a table is longer.
inline constexpr size_t kTableWidth = 80;

/// Four characters: "999", "1.2K", "12K", "999K", "1.2M" ... (powers of 1000).
std::string compact(double number);

/// The table for people, a line each, and below it what is not shown and why. `rates`: per second,
/// over the time since `before`, or, if that is null, since each device was opened; else in all.
std::vector<std::string> table_of(const Sample& now, const Sample* before, bool rates);

}  // namespace diwarp::tools
