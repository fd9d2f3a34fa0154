// SPDX-License-Identifier: Apache-2.0
#include "run/environment.h"

#include <diwarp/address.h>
#include <diwarp/error.h>

#include <cstdlib>

#include "common/failure.h"
#include "common/numbers.h"

namespace diwarp::tools {
namespace {

void check_device(const std::string& text) {
  const size_t sign = text.find('=');
  const bool named = sign != std::string::npos && sign != 0 && text.find(',') == std::string::npos;
  try {
    if (named) Address::parse(text.substr(sign + 1));
  } catch (const Error&) {
    throw Failure("--device " + text + ": \"" + text.substr(sign + 1) + "\" is no address.");
  }
  if (!named) throw Failure("--device is NAME=ADDR, not \"" + text + "\".");
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
  for (const std::string& device : options.devices) check_device(device);
  Variables variables{{"LD_LIBRARY_PATH", library_path(folder)}};
  if (!options.devices.empty())
    variables.emplace_back("DIWARP_RUN_DEVICES", joined(options.devices));
  if (!options.spin.empty()) variables.emplace_back("DIWARP_RUN_SPIN", options.spin);
  if (options.cpu >= 0) variables.emplace_back("DIWARP_RUN_CPU", std::to_string(options.cpu));
  if (!options.ud.empty()) variables.emplace_back("DIWARP_RUN_UD", options.ud);
  if (!options.ud_rate.empty())
    variables.emplace_back("DIWARP_RUN_UD_RATE", std::to_string(parse_rate(options.ud_rate)));
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
