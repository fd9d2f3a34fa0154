// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device_info.h>

#include <vector>

#include "common/control.h"

namespace diwarp::tools {

/// The hardware devices of this host, and the libraries that they are used through.
struct HardwareInfo {
  HardwareLibraries libraries;
  std::vector<DeviceInfo> devices;
};

/// Does not fail: `libraries.refusal` tells what went wrong.
HardwareInfo hardware_info();

void print_hardware(const HardwareInfo& info);
Json to_json(const HardwareInfo& info);

}  // namespace diwarp::tools
