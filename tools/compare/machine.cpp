// SPDX-License-Identifier: Apache-2.0
#include "compare/machine.h"

#include <diwarp/device.h>
#include <sys/utsname.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "common/socket.h"
#include "compare/fabric.h"
#include "compare/socket_lanes.h"
#include "compare/ucx.h"

namespace diwarp::tools {
namespace {

std::string first_line(const char* file) {
  std::ifstream input(file);
  std::string line;
  std::getline(input, line);
  return line.empty() ? "unknown" : line;
}

/// The names of the backends that devices can have here.
std::string available_backends() {
  std::string names;
  for (const IoBackendName& one : kIoBackends)
    if (one.io != IoBackend::automatic && Device::why_unavailable(one.io).empty())
      names.append(names.empty() ? "" : ", ").append(one.name);
  return names;
}

std::string processor() {
  std::ifstream input("/proc/cpuinfo");
  for (std::string line; std::getline(input, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t value = line.find(": ");
    if (value != std::string::npos) return line.substr(value + 2);
  }
  return "unknown";
}

Json describe_kernel() {
  utsname names{};
  uname(&names);
  return {{"kernel", names.release}, {"architecture", names.machine}};
}

}  // namespace

Json describe_machine(const Address& address) {
  // Gone before a program is started: a fork wants no other threads.
  const DeviceAttributes attributes = Device::open(address).query();
  Json machine = describe_kernel();
  machine["processor"] = processor();
  machine["processors"] = std::thread::hardware_concurrency();
  machine["loopback_mtu"] = first_line("/sys/class/net/lo/mtu");
  machine["udp_gso_gro"] = trains_obstacle().empty();
  machine["datagram_backend"] = attributes.datagram_backend;
  machine["stream_backend"] = attributes.stream_backend;
  machine["io_available"] = available_backends();
  machine["crc_backend"] = attributes.crc_backend;
  machine["libfabric"] = fabric_version();
  machine["ucx"] = ucx_version();
  machine["rmem_max"] = first_line("/proc/sys/net/core/rmem_max");
  machine["wmem_max"] = first_line("/proc/sys/net/core/wmem_max");
  machine["tcp_rmem"] = first_line("/proc/sys/net/ipv4/tcp_rmem");
  machine["tcp_wmem"] = first_line("/proc/sys/net/ipv4/tcp_wmem");
  machine["udp_receive_buffer"] =
      granted_receive_buffer(address, DeviceOptions{}.udp_receive_buffer);
  return machine;
}

}  // namespace diwarp::tools
