// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace diwarp::test {

/// How often this program called operator new so far, in any of its forms.
size_t allocations();

/// How many bytes it holds of what it got by that, as the allocator counts them.
size_t allocated_bytes();

}  // namespace diwarp::test
