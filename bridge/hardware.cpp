// SPDX-License-Identifier: Apache-2.0
#include "bridge/hardware.h"

#include <algorithm>
#include <cerrno>
#include <span>

#include "base/host_addresses.h"
#include "bridge/cm_events.h"
#include "bridge/device.h"
#include "bridge/refuse.h"

namespace diwarp::bridge {
namespace {

constexpr uint8_t kPort = 1;  // iWARP devices have one

/// The devices that libibverbs lists, as long as this lives.
class DeviceList {
 public:
  explicit DeviceList(const RdmaCore& core) : core_(core) {
    int count = 0;
    list_ = core.verbs().get_device_list(&count);
    if (list_ == nullptr)
      refuse_errno(errno,
                   "The hardware devices cannot be listed; the module ib_uverbs must be loaded");
    devices_ = {list_, static_cast<size_t>(count)};
  }
  ~DeviceList() { core_.verbs().free_device_list(list_); }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::span<ibv_device* const> all() const { return devices_; }
  ibv_device* find(std::string_view name) const {
    const auto found =
        std::ranges::find_if(devices_, [&](ibv_device* one) { return name == one->name; });
    return found == devices_.end() ? nullptr : *found;
  }
  std::string names() const {
    std::string all;
    for (ibv_device* const one : devices_)
      all += (all.empty() ? "" : ", ") + std::string(one->name);
    return all.empty() ? "none" : all;
  }

 private:
  const RdmaCore& core_;
  ibv_device** list_;
  std::span<ibv_device*> devices_;
};

/// The name of the hardware device that has this address; empty: none.
std::string device_with(CmEvents& events, const RdmaCore& core, const Address& address) {
  const CmEndpoint endpoint = CmEndpoint::create(events, core);
  sockaddr_storage name;
  address.to_sockaddr(name);
  if (core.cm().bind_addr(endpoint.get(), reinterpret_cast<sockaddr*>(&name)) != 0) return "";
  const ibv_context* const context = endpoint.get()->verbs;
  return context != nullptr ? context->device->name : "";
}

std::vector<Address> addresses_of(const RdmaCore& core, std::string_view name) {
  std::vector<Address> found;
  CmEvents events(core);
  for (const Address& address : host_addresses())
    if (device_with(events, core, address) == name) found.push_back(address);
  return found;
}

const char* in_words(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "down";
    case IBV_PORT_INIT:
      return "initialising";
    case IBV_PORT_ARMED:
      return "armed";
    case IBV_PORT_ACTIVE:
      return "active";
    case IBV_PORT_ACTIVE_DEFER:
      return "active, deferred";
    default:
      return "unknown";
  }
}

ibv_port_state port_state(const RdmaCore& core, ibv_context* context) {
  ibv_port_attr port{};  // longer than what the function fills, the state included
  const int failed =
      core.verbs().query_port(context, kPort, reinterpret_cast<_compat_ibv_port_attr*>(&port));
  return failed != 0 ? IBV_PORT_NOP : port.state;
}

/// Why diwarp cannot use a device of this kind; empty: it can.
std::string refusal_of_kind(const ibv_device& device) {
  if (device.transport_type == IBV_TRANSPORT_IWARP) return "";
  return "it is an InfiniBand or RoCE device; diwarp speaks iWARP";
}

std::string refusal_of(const RdmaCore& core, ibv_device& device, DeviceInfo& info) {
  if (std::string kind = refusal_of_kind(device); !kind.empty()) return kind;
  const Owned<ibv_context> context(core.verbs().open_device(&device), {core.verbs().close_device});
  if (!context)
    return "it cannot be opened (" + std::error_code(errno, std::system_category()).message() +
           "): this process must be able to open /dev/infiniband/" + device.dev_name;
  const ibv_port_state state = port_state(core, context.get());
  info.state = in_words(state);
  ibv_device_attr limits{};
  if (errno_of(core.verbs().query_device(context.get(), &limits)) == 0)
    info.firmware = limits.fw_ver;
  info.addresses = addresses_of(core, device.name);
  if (state != IBV_PORT_ACTIVE) return "its port is " + info.state;
  if (info.addresses.empty()) return "it has no IP address";
  return "";
}

DeviceInfo info_of(const RdmaCore& core, ibv_device& device) {
  DeviceInfo info{.name = device.name, .hardware = true};
  try {
    info.refusal = refusal_of(core, device, info);
  } catch (const Error& error) {
    info.refusal = error.what();
  }
  return info;
}

Address choose(const DeviceInfo& info, const std::optional<Address>& wanted) {
  if (!wanted) return info.addresses.front();
  if (std::ranges::find(info.addresses, wanted->with_port(0)) != info.addresses.end())
    return wanted->with_port(0);
  std::string all;
  for (const Address& address : info.addresses) all += " " + address.host();
  refuse(Errc::invalid_argument,
         "The device " + info.name + " has not the address " + wanted->host() + ", but" + all);
}

}  // namespace

std::shared_ptr<provider::Device> open_device(std::string_view name,
                                              const std::optional<Address>& address,
                                              const DeviceOptions& options) {
  const RdmaCore& core = RdmaCore::loaded();
  const DeviceList list(core);
  ibv_device* const device = list.find(name);
  if (device == nullptr)
    refuse(Errc::invalid_argument,
           "There is no hardware device " + std::string(name) + ". This host has: " + list.names());
  DeviceInfo info;
  info.name = name;
  const std::string refusal = refusal_of(core, *device, info);
  if (!refusal.empty())
    refuse(Errc::invalid_argument, "The device " + info.name + " cannot be used: " + refusal);
  return Device::open(info.name, choose(info, address), options);
}

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> all;
  try {
    const RdmaCore& core = RdmaCore::loaded();
    const DeviceList list(core);
    for (ibv_device* const device : list.all()) all.push_back(info_of(core, *device));
  } catch (const Error&) {  // libraries() tells
  }
  return all;
}

std::string name_of_device_at(const Address& address) {
  const RdmaCore& core = RdmaCore::loaded();
  const DeviceList list(core);
  std::string all;
  for (ibv_device* const device : list.all()) {
    const DeviceInfo info = info_of(core, *device);
    for (const Address& own : info.addresses) {
      if (own == address.with_port(0)) return info.name;
      all += (all.empty() ? "" : ", ") + info.name + " (" + own.host() + ")";
    }
  }
  refuse(Errc::invalid_argument, "No hardware device has the address " + address.host() +
                                     ". This host has: " + (all.empty() ? "none" : all));
}

HardwareLibraries libraries() {
  HardwareLibraries both;
  try {
    const RdmaCore& core = RdmaCore::loaded();
    both = {.verbs = core.verbs_file(), .cm = core.cm_file()};
    const DeviceList list(core);
  } catch (const Error& error) {
    both.refusal = error.what();
  }
  return both;
}

}  // namespace diwarp::bridge
