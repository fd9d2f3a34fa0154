// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace diwarp::tools {

/// Order statistics of one sample, by nearest rank: every figure is a value that was measured.
struct Summary {
  double min = 0;
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
  double max = 0;
};

/// All zero for no values.
Summary summarize(std::vector<double> values);

/// By linear interpolation between the order statistics: 0 gives the least value, 1 the greatest.
/// 0 for no values.
double quantile(const std::vector<double>& sorted, double share);

/// The middle of the values, the mean of the middle two where their number is even; 0 for none.
double median(std::vector<double> values);

}  // namespace diwarp::tools
