// SPDX-License-Identifier: Apache-2.0
#include "dgram/reorder_buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace diwarp::dgram {

BufferedDatagram* ReorderBuffer::keep(RdKind kind, uint8_t flags, ConstBytes bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  const uint32_t capacity = std::max(kUsual, std::bit_ceil(size));
  largest_ = std::max(largest_, capacity);
  if (used_ + capacity > max_bytes_) return nullptr;
  BufferedDatagram* kept = nullptr;
  if (capacity == kUsual && free_ != nullptr) {
    kept = std::exchange(free_, free_->next);
  } else {
    void* const memory = ::operator new(sizeof(BufferedDatagram) + capacity, std::nothrow);
    if (memory == nullptr) return nullptr;
    kept = new (memory) BufferedDatagram{.capacity = capacity};
  }
  used_ += capacity;
  kept->next = nullptr;
  kept->size = size;
  kept->flags = flags;
  kept->kind = kind;
  if (size != 0) std::memcpy(kept + 1, bytes.data(), size);
  return kept;
}

void ReorderBuffer::release(BufferedDatagram* kept) {
  used_ -= kept->capacity;
  if (kept->capacity != kUsual) return ::operator delete(kept);
  kept->next = free_;
  free_ = kept;
}

bool ReorderBuffer::take(size_t bytes) {
  if (bytes > max_bytes_ - used_) return false;
  used_ += bytes;
  return true;
}

uint32_t ReorderBuffer::room() const {
  return static_cast<uint32_t>(std::min<size_t>((max_bytes_ - used_) / largest_, UINT32_MAX));
}

void ReorderBuffer::shrink() {
  while (free_ != nullptr) ::operator delete(std::exchange(free_, free_->next));
}

}  // namespace diwarp::dgram
