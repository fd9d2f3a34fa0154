// SPDX-License-Identifier: Apache-2.0
#include "dgram/reorder_buffer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>
#include <utility>

namespace diwarp::dgram {

BufferedDatagram* ReorderBuffer::keep(RdKind kind, uint8_t flags, ConstBytes bytes,
                                      BufferShare& share) {
  const auto size = static_cast<uint32_t>(bytes.size());
  const uint32_t capacity = std::max(kUsual, std::bit_ceil(size));
  share.largest = std::max(share.largest, capacity);
  if (capacity > left(share)) return nullptr;
  BufferedDatagram* const kept = make(capacity);
  if (kept == nullptr) return nullptr;
  used_ += capacity;
  share.used += capacity;
  kept->next = nullptr;
  kept->size = size;
  kept->flags = flags;
  kept->kind = kind;
  if (size != 0) std::memcpy(kept + 1, bytes.data(), size);
  return kept;
}

BufferedDatagram* ReorderBuffer::make(uint32_t capacity) {
  if (capacity == kUsual && free_ != nullptr) {
    unused_ -= kUsual;
    return std::exchange(free_, free_->next);
  }
  while (free_ != nullptr && used_ + unused_ + capacity > max_bytes_) free_one();  // guard(dgram)
  void* const memory = ::operator new(sizeof(BufferedDatagram) + capacity, std::nothrow);
  return memory == nullptr ? nullptr : new (memory) BufferedDatagram{.capacity = capacity};
}

void ReorderBuffer::release(BufferedDatagram* kept, BufferShare& share) {
  give_back_bytes(kept->capacity, share);
  if (kept->capacity != kUsual) return ::operator delete(kept);
  kept->next = free_;
  free_ = kept;
  unused_ += kUsual;
}

bool ReorderBuffer::take_bytes(size_t bytes, BufferShare& share) {
  if (bytes > left(share)) return false;
  while (free_ != nullptr && used_ + unused_ + bytes > max_bytes_) free_one();
  used_ += bytes;
  share.used += bytes;
  return true;
}

void ReorderBuffer::give_back_bytes(size_t bytes, BufferShare& share) {
  used_ -= bytes;
  share.used -= bytes;
  if (share.used == 0) share.largest = kUsual;
}

size_t ReorderBuffer::left(const BufferShare& share) const {
  // guard(rd-reorder-shares): => return max_bytes_ - used_;
  return std::min(max_bytes_ - used_, max_bytes_ / 2 - share.used);
}

uint32_t ReorderBuffer::room(const BufferShare& share) const {
  return static_cast<uint32_t>(std::min<size_t>(left(share) / share.largest, UINT32_MAX));
}

void ReorderBuffer::shrink() {
  while (free_ != nullptr) free_one();
}

void ReorderBuffer::free_one() {
  ::operator delete(std::exchange(free_, free_->next));
  unused_ -= kUsual;
}

}  // namespace diwarp::dgram
