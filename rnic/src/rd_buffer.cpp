// SPDX-License-Identifier: Apache-2.0
#include "rnic/rd_buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace diwarp::rnic {

KeptDatagram* RdBuffer::keep(dgram::RdKind kind, uint8_t flags, ConstBytes bytes) {
  const auto size = static_cast<uint32_t>(bytes.size());
  const uint32_t capacity = std::max(kUsual, std::bit_ceil(size));
  largest_ = std::max(largest_, capacity);
  if (used_ + capacity > max_bytes_) return nullptr;
  KeptDatagram* kept = nullptr;
  if (capacity == kUsual && free_ != nullptr) {
    kept = std::exchange(free_, free_->next);
  } else {
    void* const memory = ::operator new(sizeof(KeptDatagram) + capacity, std::nothrow);
    if (memory == nullptr) return nullptr;
    kept = new (memory) KeptDatagram{.capacity = capacity};
  }
  used_ += capacity;
  kept->next = nullptr;
  kept->size = size;
  kept->flags = flags;
  kept->kind = kind;
  if (size != 0) std::memcpy(kept + 1, bytes.data(), size);
  return kept;
}

void RdBuffer::release(KeptDatagram* kept) {
  used_ -= kept->capacity;
  if (kept->capacity != kUsual) return ::operator delete(kept);
  kept->next = free_;
  free_ = kept;
}

uint32_t RdBuffer::room() const {
  return static_cast<uint32_t>(std::min<size_t>((max_bytes_ - used_) / largest_, UINT32_MAX));
}

void RdBuffer::shrink() {
  while (free_ != nullptr) ::operator delete(std::exchange(free_, free_->next));
}

}  // namespace diwarp::rnic
