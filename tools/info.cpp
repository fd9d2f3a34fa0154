// SPDX-License-Identifier: Apache-2.0
// diwarp-info: what RNICs this host can have, in software and in hardware.
#include <diwarp/verbs.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/control.h"
#include "common/device_choice.h"
#include "common/failure.h"
#include "common/json_output.h"
#include "common/options.h"
#include "common/program.h"
#include "common/text.h"
#include "device_limits.h"
#include "hardware_info.h"
#include "system_info.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-info";
constexpr const char* kDescription =
    "Lists the addresses of this host on which a device can be opened, its hardware devices, "
    "the limits of a device (of --device, else of the first) and what it uses of this system.";

struct LocalAddress {
  std::string interface;
  Address address;
  bool up = false;
};

std::vector<LocalAddress> local_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw Failure("Cannot list the addresses of this host.");
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, ::freeifaddrs);
  std::vector<LocalAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    found.push_back({entry->ifa_name, Address::from_sockaddr(entry->ifa_addr),
                     (entry->ifa_flags & static_cast<unsigned>(IFF_UP)) != 0});
  }
  return found;
}

/// An address, and why no device can be opened on it; empty: one can.
struct Entry {
  LocalAddress where;
  std::string refusal = {};
};

Entry try_device(const LocalAddress& where, IoBackend io) {
  Entry entry{.where = where};
  try {
    Device::open(where.address, {.io = io}).query_datagram_sockets();
  } catch (const Error& error) {
    entry.refusal = sentence_of(error);
  }
  return entry;
}

std::vector<Entry> try_devices(IoBackend io) {
  std::vector<Entry> entries;
  for (const LocalAddress& where : local_addresses()) entries.push_back(try_device(where, io));
  return entries;
}

const Address& first_usable(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (entry.refusal.empty()) return entry.where.address;
  }
  throw Failure("No device can be opened on any address of this host.");
}

/// The device that is told more of.
struct Details {
  DeviceAttributes attributes;
  std::optional<DatagramSocketAttributes> sockets;  ///< none: it has no datagrams
  std::vector<CounterValue> counters;
};

Details details_of(const Device& device) {
  Details details{.attributes = device.query(), .sockets = {}, .counters = device.counters()};
  if (has(details.attributes.capabilities, Capability::datagrams))
    details.sockets = device.query_datagram_sockets();
  return details;
}

/// All that is printed.
struct Report {
  std::vector<Entry> entries;
  Details device;
  HardwareInfo hardware;
  SystemInfo system;
};

Report make_report(const DeviceChoice& choice, IoBackend io) {
  const std::vector<Entry> entries = try_devices(io);
  return {.entries = entries,
          .device = details_of(choice.open(first_usable(entries), {.io = io})),
          .hardware = hardware_info(),
          .system = system_info()};
}

std::string note_on(const Entry& entry) {
  if (!entry.refusal.empty()) return entry.refusal;
  return entry.where.up ? "" : "interface is down";
}

void print_devices(const std::vector<Entry>& entries) {
  std::printf("Devices\n");
  for (const Entry& entry : entries) {
    print_entry(entry.where.address.host() + " " + entry.where.interface, note_on(entry));
  }
}

void print_attributes(const DeviceAttributes& attributes) {
  std::printf("Can\n");
  for (const CapabilityName& one : kCapabilities)
    print_entry(std::string(one.name), has(attributes.capabilities, one.capability) ? "yes" : "no");
  std::printf("Limits\n");
  for (const Limit& limit : limits_of(attributes))
    print_entry(limit.text, std::to_string(limit.value));
  std::printf("Backends\n");
  print_entry("CRC32C", attributes.crc_backend);
  print_entry("datagrams", attributes.datagram_backend);
  print_entry("streams", attributes.stream_backend);
  print_entry("io", std::string(attributes.io_name) + " (" + attributes.io_reason + ")");
  for (const IoBackendName& one : kIoBackends) {
    if (one.io == IoBackend::automatic) continue;
    const std::string why_not = Device::why_unavailable(one.io);
    print_entry("--io " + std::string(one.name),
                why_not.empty() ? "available" : "not available: " + why_not);
  }
}

std::string to_text(const OffloadAttributes& offload) {
  if (offload.available) return "yes";
  return offload.refusal.empty() ? "no" : "no: " + offload.refusal;
}

std::string to_text(const SocketBufferAttributes& buffer, const SystemLimit& limit) {
  const std::string granted = std::to_string(buffer.granted) + " bytes";
  if (buffer.granted >= buffer.asked) return granted;
  return granted + " of " + std::to_string(buffer.asked) + " asked for; more with: sysctl -w " +
         limit.name + "=" + std::to_string(buffer.asked);
}

void print_sockets(const std::optional<DatagramSocketAttributes>& sockets, const SystemInfo& info) {
  if (!sockets) return;
  std::printf("Datagram sockets\n");
  print_entry("GSO (UDP_SEGMENT)", to_text(sockets->segmentation));
  print_entry("GRO (UDP_GRO)", to_text(sockets->coalescing));
  print_entry("lost ones are told",
              sockets->tells_overflow ? "yes" : "no: there is no SO_RXQ_OVFL");
  print_entry("receive buffer", to_text(sockets->receive_buffer, info.receive_buffer_limit));
  print_entry("send buffer", to_text(sockets->send_buffer, info.send_buffer_limit));
  print_entry("busy polling (SO_BUSY_POLL)", to_text(sockets->busy_poll));
}

void print_system(const SystemInfo& info) {
  std::printf("System\n");
  print_entry("kernel", info.kernel);
  print_entry("processors", std::to_string(info.usable_processors) + " of " +
                                std::to_string(info.processors) + " for this process");
  for (const SystemLimit& limit : {info.receive_buffer_limit, info.send_buffer_limit})
    print_entry(limit.name.c_str(), limit.value ? std::to_string(*limit.value) : "unknown here");
  const auto& locked = info.locked_memory;
  print_entry("memory that may be locked", locked ? std::to_string(*locked) + " bytes" : "any");
}

void print_counters(const std::vector<CounterValue>& counters) {
  std::printf("Counters\n");
  for (const CounterValue& counter : counters) {
    print_entry(std::string(counter.name), std::string(counter.meaning));
  }
}

Json available_backends() {
  Json json = Json::object();
  for (const IoBackendName& one : kIoBackends)
    if (one.io != IoBackend::automatic)
      json[std::string(one.name)] = Device::why_unavailable(one.io).empty();
  return json;
}

Json to_json(const OffloadAttributes& offload) {
  Json json = {{"available", offload.available}};
  if (!offload.available) json["refusal"] = offload.refusal;
  return json;
}

Json to_json(const SocketBufferAttributes& buffer) {
  return {{"asked", buffer.asked}, {"granted", buffer.granted}};
}

Json to_json(const DatagramSocketAttributes& sockets) {
  return {{"gso", to_json(sockets.segmentation)},
          {"gro", to_json(sockets.coalescing)},
          {"busy_poll", to_json(sockets.busy_poll)},
          {"tells_overflow", sockets.tells_overflow},
          {"receive_buffer", to_json(sockets.receive_buffer)},
          {"send_buffer", to_json(sockets.send_buffer)}};
}

Json to_json(const std::optional<uint64_t>& number) { return number ? Json(*number) : Json(); }

Json to_json(const SystemInfo& info) {
  return {{"kernel", info.kernel},
          {"processors", info.processors},
          {"usable_processors", info.usable_processors},
          {"rmem_max", to_json(info.receive_buffer_limit.value)},
          {"wmem_max", to_json(info.send_buffer_limit.value)},
          {"locked_memory", to_json(info.locked_memory)}};
}

Json to_json(const Entry& entry) {
  Json json = {{"address", entry.where.address.host()},
               {"interface", entry.where.interface},
               {"up", entry.where.up},
               {"usable", entry.refusal.empty()}};
  if (!entry.refusal.empty()) json["refusal"] = entry.refusal;
  return json;
}

Json to_json(const Report& report) {
  const DeviceAttributes& attributes = report.device.attributes;
  Json json = json_output(kName);
  json.update({{"devices", Json::array()},
               {"hardware", to_json(report.hardware)},
               {"capabilities", names_of(attributes.capabilities)},
               {"limits", limits_in_json(attributes)},
               {"backends",
                {{"crc32c", attributes.crc_backend},
                 {"datagrams", attributes.datagram_backend},
                 {"streams", attributes.stream_backend},
                 {"io", to_string(attributes.io)},
                 {"io_reason", attributes.io_reason},
                 {"io_available", available_backends()}}},
               {"datagram_sockets", Json()},
               {"system", to_json(report.system)},
               {"counters", Json::object()}});
  if (report.device.sockets) json["datagram_sockets"] = to_json(*report.device.sockets);
  for (const Entry& entry : report.entries) json["devices"].push_back(to_json(entry));
  for (const CounterValue& counter : report.device.counters) {
    json["counters"][std::string(counter.name)] = counter.meaning;
  }
  return json;
}

void print(const Report& report, bool counters) {
  std::printf("diwarp %s\n", to_string(version()).c_str());
  print_devices(report.entries);
  print_hardware(report.hardware);
  print_attributes(report.device.attributes);
  print_sockets(report.device.sockets, report.system);
  print_system(report.system);
  if (counters) print_counters(report.device.counters);
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  bool counters = false;
  std::string json_file;
  DeviceArguments device;
  device.add_to(app, "on the first address");
  app.add_flag("--counters", counters, "List the counters of a device, too");
  add_json_option(app, json_file);
  std::string io = "auto";
  app.add_option("--io", io, kIoHelp)->type_name(io_names())->capture_default_str();
  if (!parse_command_line(app, argc, argv)) return;
  JsonFile json(json_file);
  const Report report = make_report(device.choice(), parse_io(io));
  if (!json.replaces_text()) print(report, counters);
  json.write(to_json(report));
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
