// SPDX-License-Identifier: Apache-2.0
#include "devices/open_device.h"

#include "rnic/device.h"
#include "rnic/open_device.h"

namespace diwarp::devices {

std::shared_ptr<provider::Device> open(const Address& address, const DeviceOptions& options) {
  return rnic::open_device(address, options);
}

std::string why_unavailable(IoBackend io) { return rnic::why_unavailable(io); }

}  // namespace diwarp::devices
