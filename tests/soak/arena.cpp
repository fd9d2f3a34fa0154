// SPDX-License-Identifier: Apache-2.0
#include "soak/arena.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace soak {

namespace {

constexpr size_t kGuard = 64;  // bytes behind what an operation may use
constexpr std::byte kUnwritten{0xA5};

struct SlotClass {
  size_t size;
  size_t count;
};
constexpr std::array kClasses{SlotClass{512, 1024}, SlotClass{8 << 10, 512},
                              SlotClass{72 << 10, 320}, SlotClass{Arena::kLargest, 12}};

constexpr size_t total_bytes() {
  size_t total = 0;
  for (const SlotClass& of : kClasses) total += (of.size + kGuard) * of.count;
  return total;
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  arena_ = std::exchange(other.arena_, nullptr);
  slot_ = other.slot_;
  memory_ = std::exchange(other.memory_, {});
  region_ = std::move(other.region_);
  other.region_.reset();
  return *this;
}

void Buffer::give_back() {
  region_.reset();
  if (arena_ != nullptr) arena_->give_back(slot_, memory_.size());
  arena_ = nullptr;
  memory_ = {};
}

Arena::Arena() : memory_(std::make_unique_for_overwrite<std::byte[]>(total_bytes())) {
  std::memset(memory_.get(), std::to_integer<int>(kUnwritten), total_bytes());
  std::byte* next = memory_.get();
  for (const SlotClass& of : kClasses) {
    for (size_t i = 0; i < of.count; ++i) {
      slots_.push_back({next, of.size});
      next += of.size + kGuard;
    }
  }
}

Buffer Arena::take(size_t size) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Slot& entry = slots_[slot];
    if (entry.used || entry.size < size) continue;
    entry.used = true;
    std::memset(entry.begin + size, std::to_integer<int>(kUnwritten), kGuard);
    return {*this, slot, {entry.begin, size}};
  }
  return {};
}

void Arena::give_back(uint32_t slot, size_t used) {
  Slot& entry = slots_[slot];
  entry.used = false;
  const std::byte* guard = entry.begin + used;
  if (!std::all_of(guard, guard + kGuard, [](std::byte b) { return b == kUnwritten; })) ++overruns_;
}

}  // namespace soak
