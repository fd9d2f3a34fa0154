// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace diwarp::tools {

/// Forks: `child` runs in the new process, `parent` in this one. The child ends with its function
/// and says nothing: what it throws it has told the parent over their connection. Throws what the
/// parent throws, or Failure if only the child failed. The child is gone when this returns.
void run_two_processes(const std::function<void()>& child, const std::function<void()>& parent);

/// Binds the calling thread to a processor; -1: leaves it. Throws Failure if there is no such.
void bind_to_processor(int cpu);

}  // namespace diwarp::tools
