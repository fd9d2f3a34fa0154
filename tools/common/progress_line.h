// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/control.h"

namespace diwarp::tools {

/// A line on standard error that tells how far a long row is, if that is a terminal. It comes after
/// a second, moves twice a second and wipes itself out.
class ProgressLine {
 public:
  ProgressLine(std::string what, uint64_t total);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// Cheap: looks at the clock every 64th call.
  void update(uint64_t done) {
    if (terminal_ && ++calls_ % 64 == 0) show(done);
  }

 private:
  void show(uint64_t done);

  std::string what_;
  uint64_t total_;
  bool terminal_;
  bool shown_ = false;
  uint64_t calls_ = 0;
  Time next_;
};

}  // namespace diwarp::tools
