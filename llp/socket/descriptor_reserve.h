// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.h"
#include "llp/connector.h"

namespace diwarp::llp {

/// A descriptor that is kept for the time when there is no other: in its place a connection can be
/// taken from the kernel, so that its peer is refused at once.
class DescriptorReserve {
 public:
  DescriptorReserve() { refill(); }

  /// Takes the next connection of a listening socket and resets it. Without a descriptor another
  /// thread was faster and has it; it is had again when one is free.
  Refusal refuse_next(int listening);

 private:
  bool refill();

  UniqueFd fd_;
};

}  // namespace diwarp::llp
