// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace diwarp::compat {

/// Throws Refusal(EFAULT) where the memory is not mapped, or may not be written although it `must`.
/// Its pages are there afterwards, as if a device had pinned them. A kernel before Linux 5.14
/// cannot tell, and everything passes.
void check_memory(void* address, size_t length, bool must_be_writable);

}  // namespace diwarp::compat
