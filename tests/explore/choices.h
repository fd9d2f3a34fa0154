// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace diwarp::explore {

/// The only freedom that a run has.
class Choices {
 public:
  virtual ~Choices() = default;
  /// The answer to the next question of the run: 0 to alternatives - 1. 0 stands for what happens
  /// where nothing goes wrong.
  virtual uint32_t choose(uint32_t alternatives) = 0;
};

}  // namespace diwarp::explore
