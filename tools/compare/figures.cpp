// SPDX-License-Identifier: Apache-2.0
#include "compare/figures.h"

#include <algorithm>
#include <functional>

#include "common/summary.h"

namespace diwarp::tools {
namespace {

/// A bandwidth with more is none.
constexpr double kMaxLossPercent = 1;

std::vector<double> values_of(const std::vector<Sample>& samples, Kind kind) {
  std::vector<double> values;
  for (const Sample& sample : samples) {
    values.push_back(in_unit(kind, kind == Kind::ping_pong ? sample.mean : sample.value));
  }
  return values;
}

double loss_of(const std::vector<Sample>& samples) {
  double sent = 0, lost = 0;
  for (const Sample& sample : samples) {
    sent += static_cast<double>(sample.sent);
    lost += static_cast<double>(sample.lost);
  }
  return sent > 0 ? 100 * lost / sent : 0;
}

EndTimes times_of(const std::vector<Sample>& samples) {
  EndTimes sum;
  for (const Sample& sample : samples) {
    sum.near = sum.near + sample.near;
    sum.far = sum.far + sample.far;
  }
  return sum;
}

std::string obstacle_of(const Row& row, const Measurements& measurements) {
  for (const std::string_view lane : {row.lane, row.baseline}) {
    const auto found = measurements.obstacles.find(lane);
    if (found != measurements.obstacles.end()) return found->second;
  }
  return "";
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return {.low = quantile(values, 0.25),
          .median = quantile(values, 0.5),
          .high = quantile(values, 0.75),
          .min = values.front(),
          .max = values.back()};
}

Figure figure_of(const Row& row, const Measurements& measurements) {
  Figure figure;
  figure.row = row;
  figure.kind = info_of_lane(row.lane).kind;
  figure.obstacle = obstacle_of(row, measurements);
  if (!figure.obstacle.empty()) return figure;
  const std::vector<Sample>& lane = measurements.samples.find(row.lane)->second;
  figure.lane = figure.values = values_of(lane, figure.kind);
  figure.loss_percent = loss_of(lane);
  figure.lane_times = times_of(lane);
  if (!row.baseline.empty()) {
    const std::vector<Sample>& baseline = measurements.samples.find(row.baseline)->second;
    figure.baseline = values_of(baseline, figure.kind);
    figure.baseline_loss_percent = loss_of(baseline);
    figure.baseline_times = times_of(baseline);
    std::ranges::transform(figure.lane, figure.baseline, figure.values.begin(), std::divides());
  }
  figure.spread = spread_of(figure.values);
  return figure;
}

std::optional<bool> reached(const Figure& figure) {
  if (!figure.row.target || !figure.obstacle.empty()) return std::nullopt;
  const double loss = std::max(figure.loss_percent, figure.baseline_loss_percent);
  if (figure.kind == Kind::bandwidth && loss > kMaxLossPercent) return false;
  const double median = figure.spread.median;
  return figure.row.direction == Direction::at_most ? median <= *figure.row.target
                                                    : median >= *figure.row.target;
}

}  // namespace diwarp::tools
