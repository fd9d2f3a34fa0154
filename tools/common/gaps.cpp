// SPDX-License-Identifier: Apache-2.0
#include "common/gaps.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace diwarp::tools {

void GapCount::add(const ValidityMap& validity) {
  for (const auto& [offset, length] : validity.gaps())
    add({.count = 1, .bytes = length, .largest = length});
}

void GapCount::add(const GapCount& other) {
  count += other.count;
  bytes += other.bytes;
  largest = std::max(largest, other.largest);
}

Json to_json(const GapCount& gaps) {
  return {{"count", gaps.count}, {"bytes", gaps.bytes}, {"largest", gaps.largest}};
}

GapCount gaps_in(const Json& message) {
  const auto found = message.find("gaps");
  const Json gaps = found != message.end() && found->is_object() ? *found : Json::object();
  const auto number = [&](const char* name) { return number_in(gaps, name, 0, UINT64_MAX); };
  return {.count = number("count"), .bytes = number("bytes"), .largest = number("largest")};
}

}  // namespace diwarp::tools
