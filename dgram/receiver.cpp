// SPDX-License-Identifier: Apache-2.0
#include "dgram/receiver.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>
#include <utility>

namespace diwarp::dgram {
namespace {

constexpr uint64_t kFirstPlaces = 64;  // that the list has room for at first

}  // namespace

Receiver::Arrival Receiver::arrived(uint32_t sequence) {
  const uint64_t number = rd_extend(sequence, next_);
  // From here on unsigned: a number before next_ wraps to far beyond the window.
  const uint64_t distance = number - next_;
  if (distance >= window_) {
    urgent_ = true;
    return static_cast<int64_t>(distance) < 0 ? Arrival::duplicate : Arrival::outside;
  }
  const bool is_kept = distance < capacity_ && ring_[number & (capacity_ - 1)] != nullptr;
  if (is_kept) {
    urgent_ = true;
    return Arrival::duplicate;
  }
  ++unacknowledged_;
  // A datagram that closes a gap is news for the sender's scoreboard.
  urgent_ = urgent_ || distance != 0 || kept_ != 0;
  return distance == 0 ? Arrival::next : Arrival::early;
}

bool Receiver::keep(uint64_t number, BufferedDatagram* kept, ReorderBuffer& buffer,
                    BufferShare& share) {
  assert(number - next_ < window_ && kept != nullptr);
  if (!reserve(number - next_ + 1, buffer, share)) return false;
  BufferedDatagram*& place = ring_[number & (capacity_ - 1)];
  assert(place == nullptr);
  place = kept;
  flip(number);
  ++kept_;
  highest_ = std::max(highest_, number + 1);
  return true;
}

bool Receiver::reserve(uint64_t places, ReorderBuffer& buffer, BufferShare& share) {
  if (places <= capacity_) return true;
  const uint64_t least = std::min<uint64_t>(kFirstPlaces, window_);
  const auto capacity = static_cast<uint32_t>(std::bit_ceil(std::max(places, least)));
  if (!buffer.take_bytes(bytes_of(capacity), share)) return false;
  std::unique_ptr<BufferedDatagram*[]> ring(new (std::nothrow) BufferedDatagram*[capacity]());
  std::unique_ptr<uint64_t[]> bits(new (std::nothrow) uint64_t[words(capacity)]());
  if (!ring || !bits) {
    buffer.give_back_bytes(bytes_of(capacity), share);
    return false;
  }
  if (capacity_ != 0) buffer.give_back_bytes(bytes_of(capacity_), share);
  std::swap(ring_, ring);
  std::swap(bits_, bits);
  const uint32_t old = std::exchange(capacity_, capacity);
  for (uint64_t at = next_; old != 0 && at != highest_; ++at) {
    ring_[at & (capacity - 1)] = ring[at & (old - 1)];
    if (ring[at & (old - 1)] != nullptr) flip(at);
  }
  return true;
}

BufferedDatagram* Receiver::take_at(uint64_t number) {
  BufferedDatagram* const taken = std::exchange(ring_[number & (capacity_ - 1)], nullptr);
  if (taken == nullptr) return nullptr;
  flip(number);
  --kept_;
  return taken;
}

BufferedDatagram* Receiver::take_any() {
  while (kept_ != 0)
    if (BufferedDatagram* const taken = take_at(--highest_)) return taken;
  return nullptr;
}

RdMap Receiver::map() const {
  RdMap map;
  if (kept_ == 0) return map;
  const uint64_t words =
      std::min<uint64_t>((highest_ - next_ + 63) / 64, long_maps_ ? kRdMapWords : kRdShortMapWords);
  const uint64_t shift = next_ % 64;
  for (uint64_t at = next_; map.count < words; at += 64) {
    uint64_t word = word_of(at) << shift;
    if (shift != 0) word |= word_of(at + 63) >> (64 - shift);
    map.words[map.count++] = word;
  }
  return map;
}

uint16_t Receiver::window(uint32_t room) {
  // One is always taken: the next one needs no memory, or a little.
  const uint64_t keeps = std::max<uint64_t>(highest_ - next_, kept_) + room;
  const uint64_t wanted = next_ + std::clamp<uint64_t>(keeps, 1, window_);
  edge_ = std::max(edge_, wanted);
  return static_cast<uint16_t>(edge_ - next_);
}

void Receiver::release_memory(ReorderBuffer& buffer, BufferShare& share) {
  assert(kept_ == 0);
  if (capacity_ != 0) buffer.give_back_bytes(bytes_of(capacity_), share);
  ring_.reset();
  bits_.reset();
  capacity_ = 0;
}

}  // namespace diwarp::dgram
