// SPDX-License-Identifier: Apache-2.0
#include "bridge/owned.h"

#include <string>
#include <system_error>

#include "base/log.h"

namespace diwarp::bridge {

void log_left(int error) {
  log::error("The driver has not ended an object, which stays until the process ends: " +
             std::error_code(error, std::system_category()).message());
}

}  // namespace diwarp::bridge
