// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "stat/sample.h"

namespace diwarp::tools {

/// One JSON object on one line if `indent` is -1. `before`: as growth_of() has it.
std::string json_of(const Sample& now, const Sample* before, int indent);

/// The text format that Prometheus reads, 0.0.4. What is not shown stands in comments.
std::string prometheus_of(const Sample& now);

}  // namespace diwarp::tools
