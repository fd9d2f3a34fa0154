// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iostream>

#include "llp/uring/uring_queue.h"

namespace diwarp::test {

/// False where there is no io_uring, after telling CTest that the case is skipped.
inline bool has_io_uring() {
  if (llp::why_no_uring().empty()) return true;
  std::cout << "SKIPPED: no io_uring: " << llp::why_no_uring() << "\n";
  return false;
}

}  // namespace diwarp::test
