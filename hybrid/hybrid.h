// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "diwarp/device_options.h"
#include "hybrid/halves.h"
#include "provider/device.h"

namespace diwarp::hybrid {

/// Whether a hardware device has one STag a region for local and remote use, as iWARP devices have:
/// software can then have the same. Registers memory to find out. Throws Error.
bool has_one_stag(provider::Device& hardware);

/// Both devices, which are on one address and were opened with this `progress`, as one.
std::shared_ptr<provider::Device> join(Halves<provider::Device> halves, Progress progress);

}  // namespace diwarp::hybrid
