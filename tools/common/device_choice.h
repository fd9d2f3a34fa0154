// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>

#include <string>

#include "common/operation.h"

namespace CLI {
class App;
}

namespace diwarp::tools {

/// The device of one end, as --device and --hardware have it.
struct DeviceChoice {
  /// That Device::open() takes; empty: the device is on the address that the tool goes by.
  std::string name = {};
  Hardware hardware = Hardware::never;

  /// Throws Failure with the library's message.
  Device open(const Address& address, DeviceOptions options = {}) const;
  /// Throws Failure, likewise, if the device that `name` names, if any, cannot be opened.
  void check_name() const;
};

/// --device and --hardware. Declared before and read after CLI parses, which fills the texts
/// between.
class DeviceArguments {
 public:
  /// `otherwise` says where the device is without them.
  void add_to(CLI::App& app, const std::string& otherwise);
  /// Throws Failure with a message on a word that --hardware does not take.
  DeviceChoice choice() const;

 private:
  std::string device_;
  std::string hardware_ = "never";
};

/// Throws Failure with a message if the device lacks what the operation needs. `choice` is what it
/// was opened by.
void check_device(const Device& device, const DeviceChoice& choice, Operation operation);

}  // namespace diwarp::tools
