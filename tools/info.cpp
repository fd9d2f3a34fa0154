// SPDX-License-Identifier: Apache-2.0
// diwarp-info: what software RNICs this host can have.
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
#include "common/failure.h"
#include "common/options.h"
#include "common/program.h"
#include "system_info.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-info";
constexpr const char* kDescription =
    "Lists the addresses of this host on which a device can be opened, the limits of a device and\n"
    "what it uses of this system.";

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

/// A device on one address, or why there is none.
struct Entry {
  LocalAddress where;
  std::optional<DeviceAttributes> attributes;
  DatagramSocketAttributes sockets;
  std::vector<CounterValue> counters;
  std::string refusal;
};

Entry try_device(const LocalAddress& where, IoBackend io) {
  Entry entry{.where = where, .attributes = {}, .sockets = {}, .counters = {}, .refusal = {}};
  try {
    const Device device = Device::open(where.address, {.io = io});
    entry.sockets = device.query_datagram_sockets();
    entry.attributes = device.query();
    entry.counters = device.counters();
  } catch (const Error& error) {
    entry.refusal = error.what();
  }
  return entry;
}

std::vector<Entry> try_devices(IoBackend io) {
  std::vector<Entry> entries;
  for (const LocalAddress& where : local_addresses()) entries.push_back(try_device(where, io));
  return entries;
}

const Entry& first_usable(const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    if (entry.attributes) return entry;
  }
  throw Failure("No device can be opened on any address of this host.");
}

void print_devices(const std::vector<Entry>& entries) {
  std::printf("Devices\n");
  for (const Entry& entry : entries) {
    const std::string note =
        entry.attributes ? entry.where.up ? "" : "interface is down" : entry.refusal;
    std::printf("  %-40s %-12s %s\n", entry.where.address.host().c_str(),
                entry.where.interface.c_str(), note.c_str());
  }
}

std::vector<std::string> capability_names(Capability capabilities) {
  std::vector<std::string> names;
  for (const CapabilityName& one : kCapabilities)
    if (has(capabilities, one.capability)) names.emplace_back(one.name);
  return names;
}

void print_attributes(const DeviceAttributes& attributes) {
  std::printf("Can\n");
  for (const CapabilityName& one : kCapabilities)
    std::printf("  %-28s %s\n", std::string(one.name).c_str(),
                has(attributes.capabilities, one.capability) ? "yes" : "no");
  std::printf("Limits\n");
  std::printf("  %-28s %llu\n", "bytes in a message",
              static_cast<unsigned long long>(attributes.max_message));
  std::printf("  %-28s %u\n", "work requests in a queue", attributes.max_queue_depth);
  std::printf("  %-28s %u\n", "SGEs in a work request", attributes.max_sge);
  std::printf("  %-28s %u\n", "bytes of inline data", attributes.max_inline_data);
  std::printf("  %-28s %zu\n", "bytes of private data", kMaxPrivateData);
  std::printf("Backends\n");
  std::printf("  %-28s %s\n", "CRC32C", attributes.crc_backend.c_str());
  std::printf("  %-28s %s\n", "datagrams", attributes.datagram_backend.c_str());
  std::printf("  %-28s %s\n", "streams", attributes.stream_backend.c_str());
  std::printf("  %-28s %s (%s)\n", "io", attributes.io_name.c_str(), attributes.io_reason.c_str());
  for (const IoBackendName& one : kIoBackends) {
    if (one.io == IoBackend::automatic) continue;
    const std::string why_not = Device::why_unavailable(one.io);
    std::printf("  %-28s %s\n", ("--io " + std::string(one.name)).c_str(),
                why_not.empty() ? "available" : ("not available: " + why_not).c_str());
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

void print_row(const char* what, const std::string& value) {
  std::printf("  %-28s %s\n", what, value.c_str());
}

void print_sockets(const DatagramSocketAttributes& sockets, const SystemInfo& info) {
  std::printf("Datagram sockets\n");
  print_row("GSO (UDP_SEGMENT)", to_text(sockets.segmentation));
  print_row("GRO (UDP_GRO)", to_text(sockets.coalescing));
  print_row("lost ones are told", sockets.tells_overflow ? "yes" : "no: there is no SO_RXQ_OVFL");
  print_row("receive buffer", to_text(sockets.receive_buffer, info.receive_buffer_limit));
  print_row("send buffer", to_text(sockets.send_buffer, info.send_buffer_limit));
  print_row("busy polling (SO_BUSY_POLL)", to_text(sockets.busy_poll));
}

void print_system(const SystemInfo& info) {
  std::printf("System\n");
  print_row("kernel", info.kernel);
  print_row("processors", std::to_string(info.usable_processors) + " of " +
                              std::to_string(info.processors) + " for this process");
  for (const SystemLimit& limit : {info.receive_buffer_limit, info.send_buffer_limit})
    print_row(limit.name.c_str(), limit.value ? std::to_string(*limit.value) : "unknown here");
  const auto& locked = info.locked_memory;
  print_row("memory that may be locked", locked ? std::to_string(*locked) + " bytes" : "any");
}

void print_counters(const std::vector<CounterValue>& counters) {
  std::printf("Counters\n");
  for (const CounterValue& counter : counters) {
    std::printf("  %-28s %s\n", std::string(counter.name).c_str(),
                std::string(counter.meaning).c_str());
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
               {"usable", entry.attributes.has_value()}};
  if (!entry.attributes) json["refusal"] = entry.refusal;
  return json;
}

Json to_json(const std::vector<Entry>& entries) {
  const Entry& usable = first_usable(entries);
  const DeviceAttributes& attributes = *usable.attributes;
  Json json = {{"version", to_string(version())},
               {"devices", Json::array()},
               {"capabilities", capability_names(attributes.capabilities)},
               {"limits",
                {{"message", attributes.max_message},
                 {"queue_depth", attributes.max_queue_depth},
                 {"sge", attributes.max_sge},
                 {"inline_data", attributes.max_inline_data},
                 {"private_data", kMaxPrivateData}}},
               {"backends",
                {{"crc32c", attributes.crc_backend},
                 {"datagrams", attributes.datagram_backend},
                 {"streams", attributes.stream_backend},
                 {"io", to_string(attributes.io)},
                 {"io_reason", attributes.io_reason},
                 {"io_available", available_backends()}}},
               {"datagram_sockets", to_json(usable.sockets)},
               {"system", to_json(system_info())},
               {"counters", Json::object()}};
  for (const Entry& entry : entries) json["devices"].push_back(to_json(entry));
  for (const CounterValue& counter : usable.counters) {
    json["counters"][std::string(counter.name)] = counter.meaning;
  }
  return json;
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  bool counters = false;
  bool json = false;
  app.add_flag("--counters", counters, "List the counters of a device, too");
  app.add_flag("--json", json, "Print everything as JSON");
  std::string io = "auto";
  app.add_option("--io", io, kIoHelp)->type_name(io_names())->capture_default_str();
  if (!parse_command_line(app, argc, argv)) return;
  const std::vector<Entry> entries = try_devices(parse_io(io));
  if (json) {
    std::printf("%s\n", to_json(entries).dump(2).c_str());
    return;
  }
  std::printf("diwarp %s\n", to_string(version()).c_str());
  print_devices(entries);
  print_attributes(*first_usable(entries).attributes);
  const SystemInfo info = system_info();
  print_sockets(first_usable(entries).sockets, info);
  print_system(info);
  if (counters) print_counters(first_usable(entries).counters);
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
