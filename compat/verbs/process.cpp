// SPDX-License-Identifier: Apache-2.0
#include "compat/common/process.h"

namespace diwarp::compat::shared {

std::atomic<pid_t>& process_of_use() {
  static std::atomic<pid_t> used_by{0};
  return used_by;
}

}  // namespace diwarp::compat::shared
