// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "compare/lane.h"

namespace diwarp::tools {

/// A way over libfabric that its own fi_pingpong measures.
struct FabricWay {
  std::string provider;  ///< "tcp", "tcp;ofi_rxm", ...
  std::string endpoint;  ///< "msg", "rdm" or "dgram"
  size_t size = 64;
};

/// Both processes are started by the near end, on the processors of the two ends. A row that
/// fi_pingpong cannot do ends in Unmeasured.
std::function<std::unique_ptr<Lane>(const Place&)> fabric_lane(const FabricWay& way);

/// "" if fi_pingpong is installed, else what to install.
std::string fabric_obstacle();

/// libfabric's version; "not installed".
std::string fabric_version();

/// Microseconds of a transfer one way, from what fi_pingpong prints; nothing if they are not there.
std::optional<double> parse_fi_pingpong(const std::string& output);

}  // namespace diwarp::tools
