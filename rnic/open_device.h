// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "diwarp/device_options.h"
#include "diwarp/types.h"

namespace diwarp::rnic {

class Device;

/// A device of a real address. Throws Error: where the address is none of this host's, and where
/// the system has no descriptor or thread for the device.
std::shared_ptr<Device> open_device(const Address& address, const DeviceOptions& options);

/// Why devices of this process cannot have the backend; empty: they can.
std::string why_unavailable(IoBackend io);

}  // namespace diwarp::rnic
