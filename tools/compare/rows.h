// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "compare/lane.h"

namespace diwarp::tools {

enum class Direction : uint8_t { at_most, at_least };

/// One figure of the comparison: the ratio of two lanes, or what one lane is.
struct Row {
  std::string_view name;
  std::string title;
  std::string_view lane;
  std::string_view baseline;          ///< "" for a figure that is no ratio
  std::optional<double> target = {};  ///< of the ratio; else in the lane's unit
  Direction direction = Direction::at_most;
};

const std::vector<Row>& row_table();

/// Those whose name matches, in the table's order. Throws Failure on what is no regular expression,
/// or matches none.
std::vector<Row> choose_rows(const std::string& regex);

/// The rows with messages of another size: those whose titles have one, which have no target then.
std::vector<Row> resized(std::vector<Row> rows, size_t size);

/// The lanes that the rows need, in the order of lane_table().
std::vector<LaneInfo> lanes_of(std::span<const Row> rows);

/// "us", "GB/s" ...
std::string_view unit_of(Kind kind);
/// The value in that unit.
double in_unit(Kind kind, double value);

}  // namespace diwarp::tools
