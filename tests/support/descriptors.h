// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <algorithm>

#include "support/catch.h"

namespace diwarp::test {

/// While one lives, the process may have so many descriptors at most. UndefinedBehaviorSanitizer
/// needs some to look at memory: where there may be none left, nothing is asserted meanwhile.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit lower{.rlim_cur = std::min(before_.rlim_cur, most), .rlim_max = before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &lower) == 0);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace diwarp::test
