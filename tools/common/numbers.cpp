// SPDX-License-Identifier: Apache-2.0
#include "common/numbers.h"

#include <diwarp/types.h>

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

/// Digits with at most one point; no sign, no exponent.
std::optional<double> plain_number(std::string_view text) {
  if (text.empty() || text.find_first_not_of("0123456789.") != std::string_view::npos ||
      text.find('.') != text.rfind('.') || text == ".") {
    return std::nullopt;
  }
  return std::strtod(std::string(text).c_str(), nullptr);
}

/// A number with a suffix K, M or G, each standing for another factor `step`.
std::optional<double> scaled_number(std::string_view text, double step) {
  double factor = 1;
  if (!text.empty()) {
    constexpr std::string_view kSuffixes = "KMG";
    const size_t suffix = kSuffixes.find(static_cast<char>(std::toupper(text.back())));
    if (suffix != std::string_view::npos) {
      factor = std::pow(step, static_cast<double>(suffix + 1));
      text.remove_suffix(1);
    }
  }
  const auto number = plain_number(text);
  if (!number) return std::nullopt;
  return *number * factor;
}

uint64_t parse_size(std::string_view text) {
  const auto size = scaled_number(text, 1024);
  if (!size || *size != std::floor(*size)) {
    throw Failure(
        "\"" + std::string(text) +
        "\" is not a size: write bytes, as in 64, 4K, 1M, a list (64,4K) or powers of two "
        "(1:1M).");
  }
  if (*size > static_cast<double>(kMaxMessage)) {
    throw Failure("A message of " + std::string(text) + " bytes is too long: at most 1G.");
  }
  return static_cast<uint64_t>(*size);
}

void append_doubled(std::string_view first_text, std::string_view last_text,
                    std::vector<uint64_t>& sizes) {
  const uint64_t first = parse_size(first_text);
  const uint64_t last = parse_size(last_text);
  if (first == 0 || first > last) {
    throw Failure("\"" + std::string(first_text) + ":" + std::string(last_text) +
                  "\" is not a range of sizes: it goes up from at least 1.");
  }
  for (uint64_t size = first; size <= last; size *= 2) sizes.push_back(size);
}

void append_sizes(std::string_view text, std::vector<uint64_t>& sizes) {
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos) {
      sizes.push_back(parse_size(item));
    } else {
      append_doubled(item.substr(0, colon), item.substr(colon + 1), sizes);
    }
    if (comma == std::string_view::npos) return;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace

std::vector<uint64_t> parse_sizes(const std::vector<std::string>& texts) {
  std::vector<uint64_t> sizes;
  for (const std::string& text : texts) append_sizes(text, sizes);
  return sizes;
}

uint64_t parse_rate(std::string_view text) {
  const auto rate = scaled_number(text, 1000);
  if (!rate || *rate > 1e15) {
    throw Failure("\"" + std::string(text) +
                  "\" is not a rate: write bytes a second, as in 500K, 100M or 1.5G.");
  }
  return static_cast<uint64_t>(*rate);
}

double parse_percent(std::string_view text) {
  const std::string_view digits = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  const auto percent = plain_number(digits);
  if (!percent || *percent > 100) {
    throw Failure("\"" + std::string(text) + "\" is not a share: write percent, 0 to 100.");
  }
  return *percent;
}

}  // namespace diwarp::tools
