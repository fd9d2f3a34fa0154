// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace diwarp::test {

/// How often this program called operator new so far, in any of its forms.
size_t allocations();

}  // namespace diwarp::test
