// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compare/rows.h"

namespace diwarp::tools {

/// All measurements of a run: of each lane one a round, or why there are none.
struct Measurements {
  std::map<std::string, std::vector<Sample>, std::less<>> samples;
  std::map<std::string, std::string, std::less<>> obstacles;
};

/// The middle, and where the rounds lie.
struct Spread {
  double low = 0;  ///< first quartile
  double median = 0;
  double high = 0;  ///< third quartile
  double min = 0;
  double max = 0;
};

/// By linear interpolation between the order statistics. There must be a value.
Spread spread_of(std::vector<double> values);

/// Processor time in all rounds, of the process of each end.
struct EndTimes {
  ProcessorTime near;
  ProcessorTime far;
};

/// The result of a row.
struct Figure {
  Row row;
  Kind kind = Kind::latency;
  std::string obstacle;          ///< why there is no figure; "" if there is one
  std::vector<double> values;    ///< of each round: the ratio, or the lane's own figure
  Spread spread;                 ///< of them
  std::vector<double> lane;      ///< of each round, in unit_of(kind)
  std::vector<double> baseline;  ///< likewise; none where the row has no baseline
  double loss_percent = 0;       ///< of the lane, over all rounds
  double baseline_loss_percent = 0;
  EndTimes lane_times;
  EndTimes baseline_times;
};

Figure figure_of(const Row& row, const Measurements& measurements);

/// Whether the target is reached; nothing without a target or a figure. A bandwidth is one at no
/// more than 1 % loss, the baseline's too.
std::optional<bool> reached(const Figure& figure);

}  // namespace diwarp::tools
