// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"
#include "base/unique_fd.h"

namespace diwarp {

/// Several descriptors as one that polls readable while any of them does.
class Readiness {
 public:
  /// Throws Error.
  Readiness();

  /// Throws Error. It must outlive this, or be closed before.
  void add(int descriptor);
  /// No matter whether it was added.
  void remove(int descriptor);
  int descriptor() const { return all_.get(); }
  /// Until one is readable, at most for `limit`, or at any time for no reason.
  void wait(Duration limit) const;

 private:
  UniqueFd all_;  // an epoll instance
};

}  // namespace diwarp
