// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/control.h"
#include "common/cost.h"
#include "common/device_choice.h"
#include "common/failure.h"

namespace diwarp::tools {

/// Which end of a lane is made; both are made at the same time, each in its own process.
enum class Side : uint8_t { near, far };

/// The quantity of a lane's figures.
enum class Kind : uint8_t {
  latency,    ///< half round trip, microseconds: the median of a measurement
  ping_pong,  ///< the same, but the mean with all that goes on between two round trips
  bandwidth,  ///< valid bytes a second at the receiver
  rate,       ///< messages a second at the receiver
  memory,     ///< bytes of user memory per queue pair
};

/// One measurement.
struct Sample {
  double value = 0;
  double mean = 0;    ///< latencies
  uint64_t sent = 0;  ///< messages, datagrams or bytes, where some may get lost
  uint64_t lost = 0;
  ProcessorTime near = {};  ///< with all that the measurement takes before and after
  ProcessorTime far = {};
};

/// One way to carry something between two processes. It is made for one measurement, so that
/// nothing else is open meanwhile.
class Lane {
 public:
  virtual ~Lane() = default;
  /// Near end: warms up, then measures for about `time`.
  virtual Sample measure(Duration time) = 0;
  /// Far end: does its part of one measure().
  virtual void serve() = 0;
};

/// Why a lane, of a program that is not ours, could not be measured after all.
class Unmeasured : public Failure {
 public:
  using Failure::Failure;
};

/// Where an end of a lane is made.
struct Place {
  Side side = Side::near;
  Control& control;
  std::array<int, 2> cpus = {-1, -1};  ///< processors of the near and of the far end
  DeviceChoice device = {};
  std::optional<size_t> size = {};  ///< of the messages; none: the lane's own

  /// diwarp's, for the lanes that have one. Throws Failure.
  Device open_device(const DeviceOptions& options = {}) const {
    return device.open(control.local_address(), options);
  }
};

/// The properties of a lane; there is one table of them, in the order in which the lanes of
/// a round are measured.
struct LaneInfo {
  std::string_view name;
  Kind kind;
  std::function<std::unique_ptr<Lane>(const Place&)> make;
  /// Why it cannot be measured here: "" if it can.
  std::function<std::string()> obstacle = {};
  size_t max_size = size_t{1} << 30;  ///< of its messages
};

const std::vector<LaneInfo>& lane_table();

/// There must be such a lane.
const LaneInfo& info_of_lane(std::string_view name);

}  // namespace diwarp::tools
