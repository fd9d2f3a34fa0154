// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "compat/verbs/engine.h"

namespace diwarp::compat {

/// A device as programs get it. Those of rdma-core's providers that a program links look for fields
/// of a provider's own behind it: they find zeros there.
struct DeviceBlock : ibv_device {
  std::array<uint8_t, 64> provider_fields{};
};

/// One of the devices of this process, which are never destroyed: a pointer to one is good for
/// ever, whichever list it came from.
class Device : public DeviceBlock {
 public:
  Device(const std::string& device_name, const Address& address, uint8_t index);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// "0.0.0.0", "::", or the one address that it is on.
  const Address& address() const { return address_; }
  uint8_t index() const { return index_; }
  __be64 guid() const;
  /// The addresses of the host that belong to it now, in the order of their GIDs.
  std::vector<Address> addresses() const;
  /// Throws Refusal(ENODATA) where there is no such GID.
  Address gid_address(uint32_t number) const;
  /// Of this process. Throws diwarp::Error.
  Engine& engine();

 private:
  const Address address_;
  const uint8_t index_;
  std::mutex mutex_;  // guards engine_
  Engine* engine_ = nullptr;
};

Device& device_of(ibv_device* device);

/// The devices that programs are shown.
std::vector<Device*> listed_devices();
/// The device that connections from this address, or from any of its family, are made with. Throws
/// Refusal(EADDRNOTAVAIL) where no device has it.
Device& device_for(const Address& address);

}  // namespace diwarp::compat
