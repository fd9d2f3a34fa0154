// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "base/unique_fd.h"
#include "fuzz/cm_run.h"

namespace diwarp::fuzz {

/// Peers that speak MPA as they like, or not at all.
class CmStrangers {
 public:
  explicit CmStrangers(CmRun& run) : run_(run) {}

  void act();
  void leave() {
    for (UniqueFd& stranger : strangers_) stranger.reset();
  }

 private:
  static constexpr size_t kStrangers = 3;

  CmRun& run_;
  std::array<UniqueFd, kStrangers> strangers_;
};

}  // namespace diwarp::fuzz
