// SPDX-License-Identifier: Apache-2.0
#include "common/device_choice.h"

#include <CLI/CLI.hpp>

#include "common/failure.h"

namespace diwarp::tools {
namespace {

constexpr const char* kDeviceHelp =
    "The device: a name (hw:siw0) or an address of this host, as diwarp-info lists them (default: ";
constexpr const char* kHardwareHelp =
    "Whether a device that is opened by its address is a hardware device (prefer: where that has "
    "one that opens, else software)";
constexpr const char* kCaptureHelp =
    "Write what the device sends and receives to FILE as packets that Wireshark reads (with "
    "--loopback, that of the first client); %p in it: the process's number";

constexpr const char* kLocalHelp =
    "Whether what goes to this host goes through shared memory (require: nothing goes another "
    "way)";

template <class Names>
std::string names_of(const Names& all, const char* separator) {
  std::string names;
  for (const auto& one : all) names.append(names.empty() ? "" : separator).append(one.name);
  return names;
}

Hardware parse_hardware(const std::string& text) {
  for (const HardwareName& one : kHardwareChoices)
    if (one.name == text) return one.hardware;
  throw Failure("--hardware is one of " + names_of(kHardwareChoices, ", ") + ", not " + text + ".");
}

LocalPath parse_local(const std::string& text) {
  for (const LocalPathName& one : kLocalPaths)
    if (one.name == text) return one.local;
  throw Failure("--local is one of " + names_of(kLocalPaths, ", ") + ", not " + text + ".");
}

std::string_view name_of(LocalPath local) {
  for (const LocalPathName& one : kLocalPaths)
    if (one.local == local) return one.name;
  return "";
}

/// As the user named it, for messages.
std::string description(const Device& device, const DeviceChoice& choice) {
  return choice.name.empty() ? "The device on " + device.address().host()
                             : "The device " + choice.name;
}

bool captures_here = true;

}  // namespace

void capture_at_the_first_end() { captures_here = false; }

// The device is this end's own: unlike a connection that broke, its error needs no look at the
// peer's fate, which is what the library's Error would lead to (common/session.cpp).
Device DeviceChoice::open(const Address& address, DeviceOptions options) const {
  options.hardware = hardware;
  if (captures_here) options.pcap = pcap;
  options.pcap_limit = pcap_limit;
  options.local = local;
  options.local_ring = local_ring;
  try {
    return name.empty() ? Device::open(address.with_port(0), options) : Device::open(name, options);
  } catch (const Error& error) {
    throw Failure(sentence_of(error));
  }
}

void DeviceChoice::check_name() const {
  if (!name.empty()) open({});
}

DeviceArguments::DeviceArguments(LocalPath local) : local_(name_of(local)) {}

void DeviceArguments::add_to(CLI::App& app, const std::string& otherwise) {
  app.add_option("--device", device_, kDeviceHelp + otherwise + ")")->type_name("NAME|ADDR");
  app.add_option("--hardware", hardware_, kHardwareHelp)
      ->type_name(names_of(kHardwareChoices, "|"))
      ->capture_default_str();
  app.add_option("--local", local_, kLocalHelp)
      ->type_name(names_of(kLocalPaths, "|"))
      ->capture_default_str();
  app.add_option("--local-ring", local_ring_,
                 "Memory that one direction has there: a power of two from 256K to 8M")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES")
      ->default_str("2M");
  auto* const file = app.add_option("--pcap", pcap_, kCaptureHelp)->type_name("FILE");
  app.add_option("--pcap-limit", pcap_limit_,
                 "The most that FILE may hold; later packets are left out")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("BYTES")
      ->default_str("1G")
      ->needs(file);
}

DeviceChoice DeviceArguments::choice() const {
  return {.name = device_,
          .hardware = parse_hardware(hardware_),
          .pcap = pcap_,
          .pcap_limit = pcap_limit_,
          .local = parse_local(local_),
          .local_ring = local_ring_};
}

void check_device(const Device& device, const DeviceChoice& choice, Operation operation) {
  const OperationInfo& info = info_of(operation);
  const Capability able = device.query().capabilities;
  for (const CapabilityName& one : kCapabilities)
    if (has(info.needs, one.capability) && !has(able, one.capability))
      throw Failure(description(device, choice) + " has no " + std::string(one.name) +
                    ", which --op " + std::string(info.name) + " needs.");
}

}  // namespace diwarp::tools
