// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/source_filters.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "diwarp/error.h"

namespace diwarp::rnic {

namespace {

using Words = std::array<uint64_t, 2>;

/// The address's bytes, in network order, in as many words; the bytes beyond them are zero.
Words words_of(std::span<const uint8_t> bytes) {
  Words words{};
  std::memcpy(words.data(), bytes.data(), std::min(bytes.size(), sizeof words));
  return words;
}

/// `length` bits from the first on.
Words mask_of(size_t length) {
  std::array<uint8_t, sizeof(Words)> mask{};
  for (size_t bit = 0; bit < length; ++bit)
    mask[bit / 8] = static_cast<uint8_t>(mask[bit / 8] | (0x80u >> (bit % 8)));
  return words_of(mask);
}

}  // namespace

SourceFilters::SourceFilters(std::span<const SourceFilter> sources) {
  rules_.reserve(sources.size());
  for (const SourceFilter& source : sources) rules_.push_back(rule_of(source));
}

SourceFilters::Rule SourceFilters::rule_of(const SourceFilter& source) {
  const std::span<const uint8_t> bytes = source.network.bytes();
  if (source.prefix_length > bytes.size() * 8)  // guard(groups): condition => false
    throw Error(make_error_code(Errc::invalid_argument),
                "A filter's prefix of " + std::to_string(source.prefix_length) +
                    " bits is longer than its address, " + source.network.host());
  if (source.first_port > source.last_port)  // guard(groups): condition => false
    throw Error(make_error_code(Errc::invalid_argument),
                "A filter's ports end before they begin: first_port is " +
                    std::to_string(source.first_port) + " and last_port " +
                    std::to_string(source.last_port));
  const Words mask = mask_of(source.prefix_length);
  const Words network = words_of(bytes);
  // guard(groups): without & mask[0]
  return {.network = {network[0] & mask[0], network[1] & mask[1]},
          .mask = {mask[0], mask[1]},
          .scope = source.network.scope_id(),
          .family = source.network.family(),
          .first_port = source.first_port,
          .last_port = source.last_port};
}

bool SourceFilters::meets_rule(const Address& from) const {
  const Words words = words_of(from.bytes());
  return std::ranges::any_of(rules_, [&](const Rule& rule) {
    if (rule.family != from.family()) return false;                      // guard(groups)
    if (rule.scope != 0 && rule.scope != from.scope_id()) return false;  // guard(groups)
    // guard(groups)
    if (from.port() < rule.first_port || from.port() > rule.last_port) return false;
    // guard(groups): (words[1] & rule.mask[1]) == rule.network[1] => true
    return (words[0] & rule.mask[0]) == rule.network[0] &&
           (words[1] & rule.mask[1]) == rule.network[1];
  });
}

}  // namespace diwarp::rnic
