// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/operation.h"
#include "compare/lane.h"

namespace diwarp::tools {

/// The bytes that a queue pair of kIdleCapacity holds in user memory, by the allocator's own
/// account, over some hundred of them in a process of their own: RC with its connection; `used`:
/// after a message each way.
std::unique_ptr<Lane> make_memory_lane(const Place& place, QpType type, bool used);

}  // namespace diwarp::tools
