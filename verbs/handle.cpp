// SPDX-License-Identifier: Apache-2.0
#include "diwarp/detail/handle.h"

#include "base/fork_guard.h"
#include "diwarp/error.h"

namespace diwarp::detail {

unsigned long fork_generation() { return diwarp::fork_generation(); }

bool forked_since(unsigned long born) { return diwarp::fork_generation() != born; }

void throw_dead_handle(Errc why) {
  throw Error(make_error_code(why),
              why == Errc::moved_from
                  ? "This handle was moved from: use the one that it was moved to"
                  : "This handle was made before fork(): open a device of this process");
}

}  // namespace diwarp::detail
