// SPDX-License-Identifier: Apache-2.0
#include "devices/open_device.h"

#include "devices/providers.h"
#include "rnic/open_device.h"

namespace diwarp::devices {

std::shared_ptr<provider::Device> open(std::string_view name, const DeviceOptions& options) {
  for (const Provider& provider : providers())
    if (name.starts_with(provider.prefix))
      return provider.open(name.substr(provider.prefix.size()), options);
  return nullptr;  // not reached: the last prefix is empty
}

std::shared_ptr<provider::Device> open(const Address& address, const DeviceOptions& options) {
  return open_at(address, options);
}

std::vector<DeviceInfo> list() {
  std::vector<DeviceInfo> all;
  for (const Provider& provider : providers()) {
    std::vector<DeviceInfo> some = provider.list();
    all.insert(all.end(), std::make_move_iterator(some.begin()),
               std::make_move_iterator(some.end()));
  }
  return all;
}

std::string why_unavailable(IoBackend io) { return rnic::why_unavailable(io); }

}  // namespace diwarp::devices
