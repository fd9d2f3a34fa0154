// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "switch/frame.h"

namespace network {

/// A TAP device: what the kernel of a network namespace takes for a network interface.
class Tap {
 public:
  /// Creates the device in the namespace whose file is at `space`. Throws
  /// diwarp::tools::Failure, whose sentence says what is wrong and what to do.
  Tap(const std::string& space, const std::string& name);
  Tap(Tap&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}
  ~Tap();

  int descriptor() const { return fd_; }
  /// The next frame that the kernel sends; false if there is none.
  bool read(Frame& frame);
  /// Hands the kernel a frame. False if it did not take it.
  bool write(const Frame& frame) const;

 private:
  int fd_ = -1;
  Frame buffer_;  // of the largest frame: `frame` of read() has only what was read
};

}  // namespace network
