// SPDX-License-Identifier: Apache-2.0
#include "common/mark.h"

#include <atomic>
#include <chrono>

#include "common/spin.h"

namespace diwarp::tools {
namespace {

/// Never 0, which is what is there at first, and never that of the lap before.
uint8_t mark_of(uint64_t lap) { return static_cast<uint8_t>(1 + lap % 255); }

}  // namespace

std::span<std::byte> contents_of(std::span<std::byte> message) {
  return message.first(message.size() - 1);
}

void set_mark(std::span<std::byte> message, uint64_t lap) {
  message.back() = static_cast<std::byte>(mark_of(lap));
}

bool is_marked(std::span<std::byte> message, uint64_t lap) {
  const std::atomic_ref<std::byte> mark(message.back());
  return std::to_integer<uint8_t>(mark.load(std::memory_order_acquire)) == mark_of(lap);
}

std::optional<size_t> lasting_difference(std::span<const std::byte> contents, uint64_t number,
                                         Way way) {
  constexpr Duration kLongEnough = std::chrono::seconds(2);
  std::optional<size_t> found;
  spin_until(std::chrono::steady_clock::now() + kLongEnough, [&] {
    std::atomic_signal_fence(std::memory_order_acquire);  // read memory anew
    found = first_difference(contents, number, way);
    return !found;
  });
  return found;
}

}  // namespace diwarp::tools
