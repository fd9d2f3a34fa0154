// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "diwarp/address.h"
#include "diwarp/device_options.h"

namespace diwarp::provider {
class Device;
}

/// The one place that knows every provider of devices.
namespace diwarp::devices {

/// A device on a local address. Throws Error where the address is none of this host's, and where
/// the system has no descriptor or thread for the device.
std::shared_ptr<provider::Device> open(const Address& address, const DeviceOptions& options);

/// Why software devices of this process cannot have the backend; empty: they can.
std::string why_unavailable(IoBackend io);

}  // namespace diwarp::devices
