// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/device.h>

#include <cstdint>
#include <string>

#include "common/control.h"

namespace diwarp::tools {

/// A line on standard error that tells how far a long row is, if that is a terminal. It comes after
/// a second, moves twice a second and wipes itself out. There is one at a time.
class ProgressLine {
 public:
  /// `total` messages, for each of which the device moves so many bytes: a long message moves the
  /// line as well.
  ProgressLine(std::string what, uint64_t total, uint64_t message_bytes, const Device& device);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  /// So many messages are done, or have been begun. Cheap.
  void update(uint64_t done) {
    done_ = done;
    if (terminal_ && ++calls_ % 64 == 0) look();
  }

  /// Called about once a millisecond by every loop that waits.
  static void tick();

  /// Percent of the whole, which is never all of it: all messages may be begun before their bytes
  /// have moved, and what is moved has headers and repetitions.
  static uint64_t percent(uint64_t done, uint64_t total, uint64_t bytes, uint64_t message_bytes);

 private:
  void look();

  std::string what_;
  uint64_t total_;
  uint64_t message_bytes_;
  const Device& device_;
  uint64_t moved_before_;
  bool terminal_;
  bool shown_ = false;
  uint64_t done_ = 0;
  uint64_t calls_ = 0;
  Time next_;
};

}  // namespace diwarp::tools
