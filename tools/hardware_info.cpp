// SPDX-License-Identifier: Apache-2.0
#include "hardware_info.h"

#include <diwarp/device.h>

#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "common/failure.h"
#include "common/text.h"
#include "device_limits.h"

namespace diwarp::tools {
namespace {

std::vector<std::string> hosts_of(const DeviceInfo& info) {
  std::vector<std::string> hosts;
  for (const Address& address : info.addresses) hosts.push_back(address.host());
  return hosts;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : ", ").append(word);
  return text.empty() ? "none" : text;
}

void print_libraries(const HardwareLibraries& libraries) {
  if (libraries.verbs.empty()) return print_entry("libraries", "none: " + libraries.refusal);
  print_entry("libibverbs", libraries.verbs);
  print_entry("librdmacm", libraries.cm);
}

/// Limits and what is missing are known of a device that opens.
void print_device(const DeviceInfo& info) {
  print_entry(info.name, info.refusal.empty() ? info.state : "not usable: " + info.refusal);
  print_entry("  addresses", joined(hosts_of(info)));
  if (!info.firmware.empty()) print_entry("  firmware", info.firmware);
  if (!info.refusal.empty()) return;
  for (const Limit& limit : limits_of(info.limits))
    print_entry("  " + std::string(limit.text), std::to_string(limit.value));
  print_entry("  lacks", joined(lacks_of(info.limits)));
}

Json to_json(const HardwareLibraries& libraries) {
  Json json = {{"verbs", libraries.verbs}, {"cm", libraries.cm}};
  if (!libraries.refusal.empty()) json["refusal"] = libraries.refusal;
  return json;
}

Json to_json(const DeviceInfo& info) {
  const bool usable = info.refusal.empty();
  Json json = {{"name", info.name},
               {"state", info.state},
               {"addresses", hosts_of(info)},
               {"firmware", info.firmware},
               {"usable", usable}};
  if (!usable) {
    json["refusal"] = info.refusal;
    return json;
  }
  json["limits"] = limits_in_json(info.limits);
  json["lacks"] = lacks_of(info.limits);
  return json;
}

}  // namespace

HardwareInfo hardware_info() {
  HardwareInfo info;
  try {
    info.libraries = Device::hardware_libraries();
    for (DeviceInfo& device : Device::list())
      if (device.hardware) info.devices.push_back(std::move(device));
  } catch (const std::exception& error) {
    info.libraries.refusal = sentence_of(error);
  }
  return info;
}

// The libraries may be there and the kernel's part not; then the refusal is of the devices.
void print_hardware(const HardwareInfo& info) {
  std::printf("Hardware\n");
  print_libraries(info.libraries);
  for (const DeviceInfo& device : info.devices) print_device(device);
  if (!info.devices.empty() || info.libraries.verbs.empty()) return;
  print_entry("devices",
              "none" + (info.libraries.refusal.empty() ? "" : ": " + info.libraries.refusal));
}

Json to_json(const HardwareInfo& info) {
  Json json = {{"libraries", to_json(info.libraries)}, {"devices", Json::array()}};
  for (const DeviceInfo& device : info.devices) json["devices"].push_back(to_json(device));
  return json;
}

}  // namespace diwarp::tools
