// SPDX-License-Identifier: Apache-2.0
#include "devices/providers.h"

#include <optional>
#include <string>

#include "base/host_addresses.h"
#include "base/log.h"
#include "devices/open_device.h"
#include "diwarp/error.h"
#include "rnic/device.h"
#include "rnic/open_device.h"
#if DIWARP_HAS_BRIDGE
#include "bridge/hardware.h"
#include "hybrid/hybrid.h"
#include "provider/device.h"
#endif

namespace diwarp::devices {
namespace {

constexpr std::string_view kHardwarePrefix = "hw:";

/// One for each address of this host.
std::vector<DeviceInfo> list_software() {
  std::vector<DeviceInfo> all;
  for (const Address& address : host_addresses())
    all.push_back({.name = address.host(), .addresses = {address}});
  return all;
}

// --- Hardware, and software on the same address.

#if DIWARP_HAS_BRIDGE

constexpr std::string_view kAddressOption = "?address=";

std::shared_ptr<provider::Device> join_with_software(std::shared_ptr<provider::Device> hardware,
                                                     const DeviceOptions& options) {
  if (!hybrid::has_one_stag(*hardware)) {
    log::warn("The hardware device on " + hardware->address().host() +
              " has two keys a region: it has no queue pairs over datagrams");
    return hardware;
  }
  auto software = rnic::open_device(hardware->address(), options);
  return hybrid::join({.software = std::move(software), .hardware = std::move(hardware)},
                      options.progress);
}

/// "NAME" or "NAME?address=ADDRESS".
std::shared_ptr<provider::Device> open_hardware(std::string_view name,
                                                const DeviceOptions& options) {
  const size_t option = name.find('?');
  const bool has_option = option != std::string_view::npos;
  if (name.empty() || option == 0 ||
      (has_option && !name.substr(option).starts_with(kAddressOption)))
    throw Error(make_error_code(Errc::invalid_argument),
                "\"hw:" + std::string(name) +
                    "\" is no name of a device: it is hw:NAME or hw:NAME?address=ADDRESS");
  std::optional<Address> address;
  if (has_option) address = Address::parse(name.substr(option + kAddressOption.size()));
  return join_with_software(bridge::open_device(name.substr(0, option), address, options), options);
}

/// The limits of a device that can be opened; else why it cannot.
void add_limits(DeviceInfo& info) {
  try {
    info.limits = open_hardware(info.name, {.progress = Progress::manual})->query();
  } catch (const Error& error) {
    info.refusal = error.what();
  }
}

std::vector<DeviceInfo> list_hardware() {
  std::vector<DeviceInfo> all = bridge::list_devices();
  for (DeviceInfo& info : all) {
    if (info.refusal.empty()) add_limits(info);
    info.name = std::string(kHardwarePrefix) + info.name;
  }
  return all;
}

std::shared_ptr<provider::Device> open_hardware_at(const Address& address,
                                                   const DeviceOptions& options) {
  const std::string name = bridge::name_of_device_at(address);
  return join_with_software(bridge::open_device(name, address.with_port(0), options), options);
}

#else

constexpr const char* kNoBridge =
    "This diwarp was built without hardware devices: build it where the headers of libibverbs and "
    "librdmacm are installed";

std::shared_ptr<provider::Device> open_hardware(std::string_view, const DeviceOptions&) {
  throw Error(make_error_code(Errc::unsupported_operation), kNoBridge);
}

std::shared_ptr<provider::Device> open_hardware_at(const Address&, const DeviceOptions& options) {
  return open_hardware({}, options);
}

std::vector<DeviceInfo> list_hardware() { return {}; }

#endif

// --- Software.

std::shared_ptr<provider::Device> open_software(std::string_view name,
                                                const DeviceOptions& options) {
  return open_at(Address::parse(name), options);
}

constexpr Provider kProviders[] = {
    {kHardwarePrefix, open_hardware, list_hardware},
    {"", open_software, list_software},
};

}  // namespace

std::shared_ptr<provider::Device> open_at(const Address& address, const DeviceOptions& options) {
  if (options.hardware == Hardware::never) return rnic::open_device(address, options);
  try {
    return open_hardware_at(address, options);
  } catch (const Error& error) {
    if (options.hardware == Hardware::require) throw;
    log::warn(std::string("Software serves ") + address.host() + ": " + error.what());
  }
  return rnic::open_device(address, options);
}

std::span<const Provider> providers() { return kProviders; }

HardwareLibraries hardware_libraries() {
#if DIWARP_HAS_BRIDGE
  return bridge::libraries();
#else
  return {.refusal = kNoBridge};
#endif
}

}  // namespace diwarp::devices
