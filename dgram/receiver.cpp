// SPDX-License-Identifier: Apache-2.0
#include "dgram/receiver.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <new>
#include <utility>

namespace diwarp::dgram {

Receiver::Arrival Receiver::arrived(uint32_t sequence) {
  const uint64_t number = rd_extend(sequence, next_);
  // From here on unsigned: a number before next_ wraps to far beyond the window.
  const uint64_t distance = number - next_;
  if (distance >= window_) {
    urgent_ = true;
    return static_cast<int64_t>(distance) < 0 ? Arrival::duplicate : Arrival::outside;
  }
  const bool is_kept = ring_ && ring_[number & (capacity_ - 1)] != nullptr;
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
  if (!ring_ && !make_ring(buffer, share)) return false;
  BufferedDatagram*& place = ring_[number & (capacity_ - 1)];
  assert(place == nullptr);
  place = kept;
  ++kept_;
  highest_ = std::max(highest_, number + 1);
  return true;
}

bool Receiver::make_ring(ReorderBuffer& buffer, BufferShare& share) {
  const uint32_t capacity = std::bit_ceil<uint32_t>(window_);
  if (!buffer.take_bytes(capacity * sizeof(BufferedDatagram*), share)) return false;
  ring_.reset(new (std::nothrow) BufferedDatagram*[capacity]());
  if (ring_) capacity_ = capacity;
  if (!ring_) buffer.give_back_bytes(capacity * sizeof(BufferedDatagram*), share);
  return ring_ != nullptr;
}

BufferedDatagram* Receiver::take_next() {
  if (kept_ == 0) return nullptr;
  BufferedDatagram* const taken = std::exchange(ring_[next_ & (capacity_ - 1)], nullptr);
  if (taken != nullptr) --kept_;
  return taken;
}

BufferedDatagram* Receiver::take_any() {
  for (uint64_t at = next_; kept_ != 0 && at != highest_; ++at) {
    BufferedDatagram* const taken = std::exchange(ring_[at & (capacity_ - 1)], nullptr);
    if (taken == nullptr) continue;
    --kept_;
    return taken;
  }
  return nullptr;
}

RdMap Receiver::map() const {
  RdMap map;
  if (kept_ == 0) return map;
  const uint64_t end = std::min<uint64_t>(highest_, next_ + kRdMapWords * 64);
  for (uint64_t at = next_; at < end; ++at)
    if (ring_[at & (capacity_ - 1)] != nullptr) map.set(at - next_);
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
  if (ring_) buffer.give_back_bytes(capacity_ * sizeof(BufferedDatagram*), share);
  ring_.reset();
  capacity_ = 0;
}

}  // namespace diwarp::dgram
