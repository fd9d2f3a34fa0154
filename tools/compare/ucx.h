// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "compare/lane.h"

namespace diwarp::tools {

/// A way over UCX's shared memory (its transport `posix`), with tagged messages, that its own
/// ucx_perftest measures.
struct UcxWay {
  size_t size = 64;
  bool bandwidth = false;  ///< else half round trips
};

/// Both processes are started by the near end, on the processors of the two ends. A row that
/// ucx_perftest cannot do ends in Unmeasured.
std::function<std::unique_ptr<Lane>(const Place&)> ucx_lane(const UcxWay& way);

/// "" if ucx_perftest is installed, else what to install.
std::string ucx_obstacle();

/// UCX's version; "not installed".
std::string ucx_version();

/// What `ucx_perftest -f -v` prints at its end: microseconds of a message one way, and bytes a
/// second.
struct UcxFigures {
  double latency = 0;
  double bandwidth = 0;
};
/// Nothing if they are not there.
std::optional<UcxFigures> parse_ucx_perftest(const std::string& output);

}  // namespace diwarp::tools
