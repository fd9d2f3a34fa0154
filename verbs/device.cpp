// SPDX-License-Identifier: Apache-2.0
#include "diwarp/device.h"

#include <string>
#include <utility>

#include "devices/open_device.h"
#include "provider/device.h"

namespace diwarp {

Device Device::open(std::string_view name, const DeviceOptions& options) {
  return Device(devices::open(name, options));
}

std::vector<DeviceInfo> Device::list() { return devices::list(); }

HardwareLibraries Device::hardware_libraries() { return devices::hardware_libraries(); }

Device Device::open(const Address& address, const DeviceOptions& options) {
  return Device(devices::open(address, options));
}

Device::Device(std::shared_ptr<provider::Device> impl) : impl_(std::move(impl)) {}

size_t Device::progress() { return impl_->progress(); }

void Device::remove() { impl_->remove(); }

Address Device::address() const { return impl_->address(); }

DeviceAttributes Device::query() const { return impl_->query(); }

DatagramSocketAttributes Device::query_datagram_sockets() const {
  return impl_->query_datagram_sockets();
}

std::string Device::why_unavailable(IoBackend io) { return devices::why_unavailable(io); }

std::vector<CounterValue> Device::counters() const { return impl_->read_counters(); }

uint64_t Device::counter(std::string_view name) const {
  for (const CounterValue& value : counters())
    if (value.name == name) return value.value;
  return 0;
}

}  // namespace diwarp
