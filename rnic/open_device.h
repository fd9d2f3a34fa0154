// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "diwarp/device_options.h"
#include "diwarp/types.h"

namespace diwarp::rnic {

class Device;

/// A device of a real address. Throws Error, also where the system has no descriptor or thread for
/// it.
std::shared_ptr<Device> open_device(const Address& address, const DeviceOptions& options);

}  // namespace diwarp::rnic
