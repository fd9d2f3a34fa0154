// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <diwarp/verbs.h>

namespace soak {

class Arena;

/// Memory of an arena that one operation owns, and its registration. It goes back when this ends.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Arena& arena, uint32_t slot, std::span<std::byte> memory)
      : arena_(&arena), slot_(slot), memory_(memory) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { give_back(); }

  explicit operator bool() const { return arena_ != nullptr; }
  std::span<std::byte> bytes() const { return memory_; }

  /// Throws as MemoryRegion does.
  void register_at(const diwarp::ProtectionDomain& pd, diwarp::Access access) {
    region_.emplace(pd, memory_, access);
  }
  /// Afterwards nothing but the application touches the memory.
  void deregister() { region_.reset(); }
  bool registered() const { return region_.has_value(); }
  const diwarp::MemoryRegion& region() const { return *region_; }
  void give_back();

 private:
  Arena* arena_ = nullptr;
  uint32_t slot_ = 0;
  std::span<std::byte> memory_;
  std::optional<diwarp::MemoryRegion> region_;
};

/// All memory that operations use, in slots of a few sizes, allocated at once: memory that a
/// process takes beyond that is the library's. Each slot ends with bytes that nothing may write.
class Arena {
 public:
  static constexpr size_t kLargest = size_t{1} << 20;

  Arena();

  /// Memory of `size` bytes, or nothing where all fitting slots are in use.
  Buffer take(size_t size);

  /// How many slots came back with a wrong byte behind their end.
  uint64_t overruns() const { return overruns_; }

 private:
  friend class Buffer;
  struct Slot {
    std::byte* begin;
    size_t size;
    bool used = false;
  };
  void give_back(uint32_t slot, size_t used);

  std::unique_ptr<std::byte[]> memory_;
  std::vector<Slot> slots_;  // by size
  uint64_t overruns_ = 0;
};

}  // namespace soak
