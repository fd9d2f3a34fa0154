// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace diwarp::test {

/// While it lives, one call of operator new in this thread finds no memory: the nth from its
/// making, counted from 0. Or, with `lasting`, that one and all that follow.
class FailingAllocation {
 public:
  explicit FailingAllocation(size_t nth, bool lasting = false);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  /// Whether it came to that.
  static bool happened();
};

}  // namespace diwarp::test
