// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/bytes.h"

namespace diwarp::rnic {

/// Memory for copies that live shortly. Its bytes are not set, and growing forgets them.
class Scratch {
 public:
  /// At least `bytes`. False: there is no memory for them now, and all is as it was.
  bool reserve(size_t bytes) noexcept;
  void release() noexcept;

  size_t size() const { return size_; }
  Bytes bytes() const { return {memory_.get(), size_}; }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t size_ = 0;
};

}  // namespace diwarp::rnic
