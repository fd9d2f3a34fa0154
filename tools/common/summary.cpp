// SPDX-License-Identifier: Apache-2.0
#include "common/summary.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace diwarp::tools {
namespace {

double nearest_rank(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  const auto index = static_cast<size_t>(std::max(rank, 1.0)) - 1;
  return sorted[std::min(index, sorted.size() - 1)];
}

}  // namespace

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {.min = values.front(),
          .p50 = nearest_rank(values, 0.5),
          .p99 = nearest_rank(values, 0.99),
          .p999 = nearest_rank(values, 0.999),
          .max = values.back()};
}

double quantile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const double rank = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(rank));
  const size_t above = std::min(below + 1, sorted.size() - 1);
  const double part = rank - std::floor(rank);
  return sorted[below] * (1 - part) + sorted[above] * part;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace diwarp::tools
