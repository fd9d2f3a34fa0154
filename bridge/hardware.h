// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/device_info.h"
#include "diwarp/device_options.h"

namespace diwarp::provider {
class Device;
}

/// The hardware devices of this host, by their names.
namespace diwarp::bridge {

/// Opens the device that libibverbs calls `name`, on this address of it; without one on its first.
/// Throws Error with a sentence that says what there is.
std::shared_ptr<provider::Device> open_device(std::string_view name,
                                              const std::optional<Address>& address,
                                              const DeviceOptions& options);

/// The hardware device that has this address. Throws Error with a sentence that says what there is.
std::string name_of_device_at(const Address& address);

/// All that libibverbs lists, whether diwarp can use it or not, without limits. Never throws but
/// for want of memory: where the libraries cannot be loaded there is none.
std::vector<DeviceInfo> list_devices();

/// The libraries in use, or why there are none, or why they list no devices.
HardwareLibraries libraries();

}  // namespace diwarp::bridge
