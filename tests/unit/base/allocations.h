// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace diwarp::test {

/// How often this program called operator new so far, in any of its forms.
size_t allocations();

/// How many bytes it holds of what it got by that, as the allocator counts them.
size_t allocated_bytes();

/// While it lives, operator new finds no memory for `bytes` and more.
class Starvation {
 public:
  explicit Starvation(size_t bytes);
  ~Starvation();
  Starvation(const Starvation&) = delete;
  Starvation& operator=(const Starvation&) = delete;
};

}  // namespace diwarp::test
