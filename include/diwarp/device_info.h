// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/attributes.h"

/// The devices that a program may open.
namespace diwarp {

/// A device that Device::open() takes, or why it does not.
struct DeviceInfo {
  std::string name;  ///< that Device::open() takes: an address, or "hw:NAME"
  bool hardware = false;
  std::vector<Address> addresses = {};  ///< without ports
  std::string state = {};               ///< of a hardware device's port, in words
  std::string firmware = {};            ///< of a hardware device, where it tells
  std::string refusal = {};             ///< why it cannot be opened; empty: it can
  DeviceAttributes limits = {};         ///< of a hardware device that can be opened
};

/// The libraries that hardware devices are used through.
struct HardwareLibraries {
  std::string verbs = {};    ///< file of libibverbs; empty: it is not loaded
  std::string cm = {};       ///< file of librdmacm
  std::string refusal = {};  ///< why they are not loaded, or why they cannot list devices
};

}  // namespace diwarp
