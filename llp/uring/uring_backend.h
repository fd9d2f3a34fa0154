// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "llp/backend.h"
#include "llp/uring/uring_queue.h"

namespace diwarp::llp {

/// UDP and TCP, whose bytes a ring of the device's brings.
BackendRow uring_row();

/// With another ring than the row's has; the device counts for it.
std::unique_ptr<Backend> open_uring(const BackendSetup& setup, UringOptions ring,
                                    std::string& why_not);

}  // namespace diwarp::llp
