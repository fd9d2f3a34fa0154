// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include <diwarp/address.h>
#include <diwarp/error.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/host_addresses.h"
#include "common/failure.h"
#include "common/numbers.h"

namespace diwarp::tools {
namespace {

/// Those of a device that programs can name as well as the kernel's.
bool is_device_name(const std::string& name) {
  constexpr size_t kLongest = 64 - sizeof "uverbs_";  // IBV_SYSFS_NAME_MAX
  const bool fits = !name.empty() && name.size() <= kLongest;
  return fits && name.find_first_of("/, \t\n") == std::string::npos;
}

Address address_of_device(const std::string& text) {
  const std::string address = text.substr(text.find('=') + 1);
  try {
    return Address::parse(address);
  } catch (const Error&) {
    throw Failure("--device " + text + ": \"" + address + "\" is no address.");
  }
}

/// The host has all of 127.0.0.0/8, of which one is listed.
bool is_of_this_host(const Address& address) {
  if (address.is_loopback()) return true;
  const std::vector<Address> own = host_addresses();
  return std::any_of(own.begin(), own.end(), [&](const Address& one) {
    return std::ranges::equal(one.bytes(), address.bytes());
  });
}

void check_device(const std::string& text) {
  const std::string name = text.substr(0, text.find('='));
  if (text.find('=') == std::string::npos || !is_device_name(name))
    throw Failure("--device is NAME=ADDR, not \"" + text + "\".");
  const Address address = address_of_device(text);
  if (address.port() != 0)
    throw Failure("--device " + text + ": a device has an address, and no port.");
  if (address.is_any())
    throw Failure("--device " + text + ": diwarp0 and diwarp1 are on all addresses already.");
  if (!is_of_this_host(address))
    throw Failure("--device " + text + ": " + address.host() +
                  " is no address of this host (see `ip address`).");
}

void check_devices(const std::vector<std::string>& devices) {
  std::set<std::string> names = {"diwarp0", "diwarp1"};
  for (const std::string& device : devices) {
    check_device(device);
    const std::string name = device.substr(0, device.find('='));
    if (!names.insert(name).second)
      throw Failure("--device " + device + ": there is a device " + name + " already.");
  }
}

/// As the drop-ins read it.
void check_time(const char* option, const std::string& text) {
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  const bool number = !text.empty() && digits != 0 && (text.size() - unit.size()) <= 9;
  if (number && (unit.empty() || unit == "s" || unit == "ms" || unit == "us" || unit == "ns"))
    return;
  throw Failure(std::string(option) + " is a time, as in 50us, 10ms or 10s, not \"" + text + "\".");
}

uint64_t checked_rate(const std::string& text) {
  const uint64_t rate = parse_rate(text);
  if (rate == 0) throw Failure("--ud-rate 0 would send nothing: leave it out for no limit.");
  return rate;
}

std::string joined(const std::vector<std::string>& devices) {
  std::string all;
  for (const std::string& device : devices) all += (all.empty() ? "" : ",") + device;
  return all;
}

}  // namespace

std::string library_path(const std::string& folder) {
  const char* const before = std::getenv("LD_LIBRARY_PATH");
  return before != nullptr && *before != '\0' ? folder + ":" + before : folder;
}

Variables drop_in_environment(const RunOptions& options, const std::string& folder) {
  check_devices(options.devices);
  Variables variables{{"LD_LIBRARY_PATH", library_path(folder)}};
  if (!options.devices.empty())
    variables.emplace_back("DIWARP_RUN_DEVICES", joined(options.devices));
  if (!options.spin.empty()) check_time("--spin", options.spin);
  if (!options.receive_wait.empty()) check_time("--receive-wait", options.receive_wait);
  if (!options.spin.empty()) variables.emplace_back("DIWARP_RUN_SPIN", options.spin);
  if (options.cpu >= 0) variables.emplace_back("DIWARP_RUN_CPU", std::to_string(options.cpu));
  if (!options.ud.empty()) variables.emplace_back("DIWARP_RUN_UD", options.ud);
  if (!options.ud_rate.empty())
    variables.emplace_back("DIWARP_RUN_UD_RATE", std::to_string(checked_rate(options.ud_rate)));
  if (!options.receive_wait.empty())
    variables.emplace_back("DIWARP_RUN_RECEIVE_WAIT", options.receive_wait);
  if (!options.log.empty()) variables.emplace_back("DIWARP_LOG", options.log);
  if (options.crc) variables.emplace_back("DIWARP_RUN_CRC", "1");
  if (options.counters) variables.emplace_back("DIWARP_RUN_COUNTERS", "1");
  return variables;
}

std::string as_lines(const Variables& variables) {
  std::string lines;
  for (const auto& [name, value] : variables) lines.append(name).append("=").append(value) += '\n';
  return lines;
}

}  // namespace diwarp::tools
