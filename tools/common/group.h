// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/address.h>
#include <diwarp/types.h>

#include <optional>

#include "common/control.h"

namespace diwarp::tools {

/// The port of a group's members if nothing else is said.
inline constexpr uint16_t kGroupPort = 18561;

/// A group that messages go to.
struct Group {
  Address address;  ///< with the port of its members' queue pairs
  STag stag = 0;    ///< under which the members register their memory, at base 0
};

/// With an STag of its own.
Group make_group(const Address& address);

/// As a "row" message has it; nothing if that goes to one receiver. Throws Failure.
Json to_json(const Group& group);
std::optional<Group> group_in(const Json& row);

}  // namespace diwarp::tools
