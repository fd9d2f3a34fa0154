// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

namespace diwarp::tools {

/// Forks: each of `children` runs in a new process, `parent` in this one. A child ends with its
/// function and says nothing: it has told the parent of an exception over their connection. Throws
/// the parent's exception, or Failure if only a child failed. The children are gone when this
/// returns.
void run_processes(const std::vector<std::function<void()>>& children,
                   const std::function<void()>& parent);

/// Binds the calling thread to a processor; -1: leaves it. Throws Failure if there is no such.
void bind_to_processor(int cpu);

}  // namespace diwarp::tools
