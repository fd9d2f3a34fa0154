// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "llp/backend.h"

namespace diwarp::llp {

/// The backend with shared memory for what goes to queue pairs of this host, if the device's
/// options want that; else as it is. Null stays null. `observed`: something above captures or
/// impairs what goes there, so it needs CRCs.
std::unique_ptr<Backend> local_as_asked(std::unique_ptr<Backend> inner, const BackendSetup& setup,
                                        bool observed);

}  // namespace diwarp::llp
