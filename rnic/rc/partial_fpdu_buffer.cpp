// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/partial_fpdu_buffer.h"

#include <cassert>

#include "rnic/engine/engine_buffers.h"

namespace diwarp::rnic {

namespace {

size_t capacity_for(size_t bytes) {
  if (bytes <= kIdlePartialFpdu) return kIdlePartialFpdu;
  return bytes <= PartialFpduBuffer::kWholeFpdu ? PartialFpduBuffer::kWholeFpdu
                                                : kStreamBufferBytes;
}

}  // namespace

void PartialFpduBuffer::make_room(size_t bytes) {
  const size_t held = size();
  assert(held + bytes <= kStreamBufferBytes);
  if (held + bytes <= capacity_) {
    std::memmove(memory_.get(), memory_.get() + begin_, held);
  } else {
    const size_t capacity = capacity_for(held + bytes);
    std::unique_ptr<std::byte[]> larger(new std::byte[capacity]);
    if (held != 0) std::memcpy(larger.get(), memory_.get() + begin_, held);
    memory_ = std::move(larger);
    capacity_ = capacity;
  }
  begin_ = 0;
  end_ = held;
}

}  // namespace diwarp::rnic
