// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/attributes.h"
#include "diwarp/detail/handle.h"
#include "diwarp/device_info.h"
#include "diwarp/device_options.h"
#include "diwarp/export.h"

namespace diwarp {

namespace provider {
class Device;
}

/// An RNIC: in software, on one address of this host or on all of them; or a hardware device.
class DIWARP_EXPORT Device {
 public:
  /// Opens a device on `address`: an IPv4 or IPv6 address of this host, "0.0.0.0" or "::" for all.
  /// Throws Error if it is not one.
  /// "hw:NAME" is a hardware device by libibverbs' name, on its first address;
  /// "hw:NAME?address=ADDRESS" the same on another of its addresses (docs/bridge.md).
  static Device open(std::string_view name, const DeviceOptions& options = {});
  static Device open(const Address& address, const DeviceOptions& options = {});

  /// A device for each address of this host, and every hardware device. Loads rdma-core's libraries
  /// where there are some.
  static std::vector<DeviceInfo> list();
  /// The libraries that hardware devices are used through. Loads them.
  static HardwareLibraries hardware_libraries();

  /// One step of the engine: commands, receive, transmit, timers. Returns how much was done (0:
  /// nothing). Needed with Progress::manual; allowed with either.
  size_t progress();

  /// Tells every connection manager id of the device that it goes away (device_removal). It works
  /// on until its last object is gone.
  void remove();

  Address address() const;
  DeviceAttributes query() const;
  /// The means that the system gives to the sockets of UD and RD queue pairs, and those it refuses.
  /// Opens a socket to ask it, for a moment. Throws Error where none can be opened.
  DatagramSocketAttributes query_datagram_sockets() const;
  /// Why devices of this process cannot have the backend; empty where they can. May ask the system
  /// for what the backend needs, once in a process.
  static std::string why_unavailable(IoBackend io);
  /// Every counter of the device, drop reasons included, summed over its queue pairs.
  std::vector<CounterValue> counters() const;
  /// The value of one counter by its name, 0 for an unknown name.
  uint64_t counter(std::string_view name) const;

 private:
  friend class detail::HandleAccess;
  explicit Device(std::shared_ptr<provider::Device> impl);
  detail::Handle<provider::Device> impl_;
};

}  // namespace diwarp
