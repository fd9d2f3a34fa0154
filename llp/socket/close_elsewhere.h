// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unique_fd.h"

namespace diwarp::llp {

/// Closes a descriptor that another process chose, by a thread of its own: close(2) waits as long
/// as that process wants it to (SO_LINGER, a file system of its own). Any thread.
void close_elsewhere(UniqueFd descriptor);

}  // namespace diwarp::llp
