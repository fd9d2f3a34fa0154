// SPDX-License-Identifier: Apache-2.0
#include "diwarp/device.h"

#include <string>

#include "base/counters.h"
#include "rnic/cm/control.h"
#include "rnic/device.h"
#include "rnic/open_device.h"

namespace diwarp {

Device Device::open(std::string_view address, const DeviceOptions& options) {
  return open(Address::parse(address), options);
}

Device Device::open(const Address& address, const DeviceOptions& options) {
  return Device(rnic::open_device(address, options));
}

Device::Device(std::shared_ptr<rnic::Device> impl) : impl_(std::move(impl)) {}

size_t Device::progress() { return impl_->engine().poll_step(); }

void Device::remove() { impl_->control().announce_removal(); }

Address Device::address() const { return impl_->address(); }

DeviceAttributes Device::query() const { return impl_->query(); }

DatagramSocketAttributes Device::query_datagram_sockets() const {
  return impl_->query_datagram_sockets();
}

std::string Device::why_unavailable(IoBackend io) { return rnic::why_unavailable(io); }

std::vector<CounterValue> Device::counters() const {
  const Counters& counters = impl_->counters();
  std::vector<CounterValue> values;
  values.reserve(Counters::count());
  for (size_t index = 0; index < Counters::count(); ++index) {
    const auto counter = static_cast<Counter>(index);
    values.push_back(
        {Counters::name(counter), Counters::description(counter), counters.get(counter)});
  }
  return values;
}

uint64_t Device::counter(std::string_view name) const {
  for (const CounterValue& value : counters())
    if (value.name == name) return value.value;
  return 0;
}

}  // namespace diwarp
