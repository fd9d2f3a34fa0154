// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/scratch.h"

#include <new>
#include <utility>

namespace diwarp::rnic {

bool Scratch::reserve(size_t bytes) noexcept {
  if (bytes <= size_) return true;
  std::unique_ptr<std::byte[]> larger(new (std::nothrow) std::byte[bytes]);
  if (!larger) return false;
  memory_ = std::move(larger);
  size_ = bytes;
  return true;
}

void Scratch::release() noexcept {
  memory_.reset();
  size_ = 0;
}

}  // namespace diwarp::rnic
