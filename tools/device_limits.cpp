// SPDX-License-Identifier: Apache-2.0
#include "device_limits.h"

#include <diwarp/types.h>

#include <nlohmann/json.hpp>

namespace diwarp::tools {
namespace {

/// Of devices without Capability::long_private_data.
constexpr size_t kShortPrivateData = 251;

}  // namespace

std::vector<Limit> limits_of(const DeviceAttributes& attributes) {
  const bool long_data = has(attributes.capabilities, Capability::long_private_data);
  return {
      {"message", "bytes in a message", attributes.max_message},
      {"queue_depth", "work requests in a queue", attributes.max_queue_depth},
      {"sge", "SGEs in a work request", attributes.max_sge},
      {"inline_data", "bytes of inline data", attributes.max_inline_data},
      {"private_data", "bytes of private data", long_data ? kMaxPrivateData : kShortPrivateData},
      {"queue_pairs", "RC queue pairs", attributes.max_queue_pairs},
      {"completion_entries", "entries of a completion queue", attributes.max_completion_entries},
      {"memory_regions", "memory regions", attributes.max_memory_regions},
      {"windows", "memory windows", attributes.max_windows},
      {"shared_receive_depth", "receives in a shared queue", attributes.max_shared_receive_depth},
      {"ord", "Reads outstanding (ORD)", attributes.max_ord},
      {"ird", "Reads answered (IRD)", attributes.max_ird}};
}

Json limits_in_json(const DeviceAttributes& attributes) {
  Json json = Json::object();
  for (const Limit& limit : limits_of(attributes)) json[limit.name] = limit.value;
  return json;
}

std::vector<std::string> names_of(Capability capabilities) {
  std::vector<std::string> names;
  for (const CapabilityName& one : kCapabilities)
    if (has(capabilities, one.capability)) names.emplace_back(one.name);
  return names;
}

std::vector<std::string> lacks_of(const DeviceAttributes& attributes) {
  std::vector<std::string> names;
  for (const CapabilityName& one : kCapabilities)
    if (!has(attributes.capabilities, one.capability)) names.emplace_back(one.name);
  return names;
}

}  // namespace diwarp::tools
