// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>

#include <cstdint>
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
  /// As DeviceOptions has them.
  std::string pcap = {};
  uint64_t pcap_limit = DeviceOptions{}.pcap_limit;
  LocalPath local = DeviceOptions{}.local;
  size_t local_ring = DeviceOptions{}.local_ring;

  /// Throws Failure with the library's message.
  Device open(const Address& address, DeviceOptions options = {}) const;
  /// Throws Failure, likewise, if the device that `name` names, if any, cannot be opened.
  void check_name() const;
};

/// Devices that this process opens from now on are not captured: it plays the second end of a run
/// on this host, and the file of the first end has all packets.
void capture_at_the_first_end();

/// --device, --hardware, --local, --local-ring, --pcap and --pcap-limit. Declared before and read
/// after CLI parses, which fills the texts between.
class DeviceArguments {
 public:
  /// `local`: what --local is where it is not given.
  explicit DeviceArguments(LocalPath local = DeviceOptions{}.local);
  /// `otherwise` says where the device is without them.
  void add_to(CLI::App& app, const std::string& otherwise);
  /// Throws Failure with a message on a word that --hardware or --local does not take.
  DeviceChoice choice() const;

 private:
  std::string device_;
  std::string hardware_ = "never";
  std::string pcap_;
  uint64_t pcap_limit_ = DeviceOptions{}.pcap_limit;
  std::string local_;
  size_t local_ring_ = DeviceOptions{}.local_ring;
};

/// Throws Failure with a message if the device lacks what the operation needs. `choice` is what it
/// was opened by.
void check_device(const Device& device, const DeviceChoice& choice, Operation operation);

}  // namespace diwarp::tools
