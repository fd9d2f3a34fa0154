// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/device_info.h"
#include "diwarp/device_options.h"

namespace diwarp::provider {
class Device;
}

/// The one place that knows every provider of devices.
namespace diwarp::devices {

/// The device of this name: an address of this host, or "hw:NAME", "hw:NAME?address=ADDRESS" for a
/// hardware device. Throws Error where there is none, and where the system has no descriptor or
/// thread for it.
std::shared_ptr<provider::Device> open(std::string_view name, const DeviceOptions& options);
/// The device on a local address; whether hardware or software, `options.hardware` says.
std::shared_ptr<provider::Device> open(const Address& address, const DeviceOptions& options);

/// What open() takes, and the hardware devices that it does not.
std::vector<DeviceInfo> list();
HardwareLibraries hardware_libraries();

/// Why software devices of this process cannot have the backend; empty: they can.
std::string why_unavailable(IoBackend io);

}  // namespace diwarp::devices
