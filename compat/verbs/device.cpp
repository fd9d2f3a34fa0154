// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/device.h"

#include <endian.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "compat/common/addresses.h"
#include "compat/common/error.h"
#include "compat/common/immortal.h"
#include "compat/common/settings.h"

namespace diwarp::compat {
namespace {

void copy_text(std::string_view text, char* target, size_t room) {
  const size_t length = std::min(text.size(), room - 1);
  std::memcpy(target, text.data(), length);
  target[length] = '\0';
}

/// All that this process may have. The first two are on all addresses of a family.
class Devices {
 public:
  Devices() {
    add("diwarp0", Address::any(AddressFamily::ipv4));
    add("diwarp1", Address::any(AddressFamily::ipv6));
    for (const NamedDevice& named : settings().devices) add(named.name, named.address);
  }

  Device& of_family(AddressFamily family) const {
    return *all_[family == AddressFamily::ipv4 ? 0 : 1];
  }
  const std::vector<Device*>& all() const { return all_; }

 private:
  void add(const std::string& name, const Address& address) {
    all_.push_back(new Device(name, address, static_cast<uint8_t>(all_.size())));
  }

  std::vector<Device*> all_;
};

const Devices& devices() {
  static Immortal<Devices> of_process;
  return *of_process;
}

/// The device on all IPv6 addresses is shown where there are some that another host could reach.
bool is_listed(const Device& device, const std::vector<Address>& host) {
  if (device.address() != Address::any(AddressFamily::ipv6)) return true;
  return std::any_of(host.begin(), host.end(), [](const Address& one) {
    return one.family() == AddressFamily::ipv6 && !one.is_loopback() && !is_link_local(one);
  });
}

}  // namespace

Device::Device(const std::string& device_name, const Address& address, uint8_t index)
    : DeviceBlock{}, address_(address), index_(index) {
  node_type = IBV_NODE_RNIC;
  transport_type = IBV_TRANSPORT_IWARP;
  copy_text(device_name, name, sizeof name);
  copy_text("uverbs_" + device_name, dev_name, sizeof dev_name);
  // Where the kernel would have the device's files; there are none.
  copy_text("/sys/class/infiniband_verbs/uverbs_" + device_name, dev_path, sizeof dev_path);
  copy_text("/sys/class/infiniband/" + device_name, ibdev_path, sizeof ibdev_path);
}

__be64 Device::guid() const {
  constexpr uint64_t kLocallyAdministered = 0x0264697761727000;  // then "diwarp"
  return htobe64(kLocallyAdministered + index_);
}

std::vector<Address> Device::addresses() const {
  if (!address_.is_any())
    return is_of_this_host(address_) ? std::vector{address_} : std::vector<Address>();
  std::vector<Address> own = host_addresses();
  std::erase_if(own, [this](const Address& one) { return one.family() != address_.family(); });
  return gid_order(own);
}

Address Device::gid_address(uint32_t number) const {
  const std::vector<Address> own = addresses();
  refuse_if(number >= own.size(), ENODATA);
  return own[number];
}

Engine& Device::engine() {
  const std::lock_guard lock(mutex_);
  if (engine_ == nullptr || !engine_->of_this_process()) engine_ = new Engine(address_);
  return *engine_;
}

Device& device_of(ibv_device* device) { return *static_cast<Device*>(device); }

std::vector<Device*> listed_devices() {
  const std::vector<Address> host = host_addresses();
  std::vector<Device*> listed;
  for (Device* device : devices().all())
    if (is_listed(*device, host)) listed.push_back(device);
  return listed;
}

Device& device_for(const Address& address) {
  if (is_unspecific(address)) return devices().of_family(address.family());
  const Address wanted = address.with_port(0);
  for (Device* device : devices().all())
    if (!device->address().is_any() && device->address() == wanted) return *device;
  refuse_if(!is_of_this_host(wanted), EADDRNOTAVAIL);
  return devices().of_family(address.family());
}

}  // namespace diwarp::compat
