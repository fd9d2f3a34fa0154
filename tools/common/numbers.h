// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace diwarp::tools {

// Numbers as users write them. Each throws Failure with a message on anything else.

/// Message sizes in bytes: "64", "4K", "1M", "1G" (powers of 1024), lists ("64,4K") and powers of
/// two from one to another ("1:1M"). In the order given; at most 1 GiB each.
std::vector<uint64_t> parse_sizes(const std::vector<std::string>& texts);

/// Bytes a second: "1000000", "500K", "100M", "1.5G" (powers of 1000).
uint64_t parse_rate(std::string_view text);

/// "1", "0.5" or "1%": percent, 0 to 100.
double parse_percent(std::string_view text);

}  // namespace diwarp::tools
