// SPDX-License-Identifier: Apache-2.0
// In this program devices that do not say otherwise use io_uring.
#include "rnic/device.h"

namespace {

[[maybe_unused]] const bool chosen = [] {
  diwarp::rnic::io_defaults().automatic = diwarp::IoBackend::uring;
  return true;
}();

}  // namespace
