// SPDX-License-Identifier: Apache-2.0
#include "common/group.h"

#include <nlohmann/json.hpp>
#include <random>

namespace diwarp::tools {
namespace {

/// STags whose upper 24 bits are zero cannot be chosen.
constexpr STag kLeastStag = 0x100;

}  // namespace

Group make_group(const Address& address) {
  std::random_device device;
  return {.address = address, .stag = static_cast<STag>(device()) | kLeastStag};
}

Json to_json(const Group& group) {
  return {{"address", group.address.host()}, {"port", group.address.port()}, {"stag", group.stag}};
}

std::optional<Group> group_in(const Json& row) {
  const auto found = row.find("group");
  if (found == row.end()) return std::nullopt;
  const Address address = address_in(*found, "address");
  const auto port = static_cast<uint16_t>(number_in(*found, "port", 1, 65535));
  const auto stag = static_cast<STag>(number_in(*found, "stag", kLeastStag, UINT32_MAX));
  return Group{.address = address.with_port(port), .stag = stag};
}

}  // namespace diwarp::tools
