// SPDX-License-Identifier: Apache-2.0
#include "soak/requests.h"

#include <algorithm>
#include <array>

namespace soak {

std::string_view to_string(Operation operation) {
  static constexpr std::array<std::string_view, 12> kNames{
      "receive", "send",      "send with invalidate", "tell", "immediate",  "write", "write-record",
      "read",    "fetch-add", "compare-swap",         "swap", "bind-window"};
  return kNames[static_cast<size_t>(operation)];
}

Request* Requests::add() {
  if (free_.empty()) return nullptr;
  Request& request = places_[free_.back()];
  request = {};
  request.id = next_++ * kMost + free_.back();
  free_.pop_back();
  return &request;
}

Request* Requests::find(uint64_t id) {
  Request& request = places_[id % kMost];
  return id != 0 && request.id == id ? &request : nullptr;
}

void Requests::release(Request& request) {
  const auto place = static_cast<uint32_t>(request.id % kMost);
  request.buffer.give_back();
  request.id = 0;
  free_.push_back(place);
}

void Requests::drop(Request& request) {
  dropped_.push_back(request.id);
  if (dropped_.size() > 4 * kMost) dropped_.pop_front();
  release(request);
}

bool Requests::was_dropped(uint64_t id) const {
  return std::find(dropped_.begin(), dropped_.end(), id) != dropped_.end();
}

}  // namespace soak
