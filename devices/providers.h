// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "diwarp/device_info.h"
#include "diwarp/device_options.h"

namespace diwarp::provider {
class Device;
}

namespace diwarp::devices {

/// A provider of devices.
struct Provider {
  std::string_view prefix;  ///< what its devices' names begin with
  /// `name` has no prefix any more.
  std::shared_ptr<provider::Device> (*open)(std::string_view name, const DeviceOptions& options);
  std::vector<DeviceInfo> (*list)();
};

/// The device on a local address; whether hardware or software, `options.hardware` says.
std::shared_ptr<provider::Device> open_at(const Address& address, const DeviceOptions& options);

/// All of them; the one of software, whose prefix is empty, is the last.
std::span<const Provider> providers();

}  // namespace diwarp::devices
