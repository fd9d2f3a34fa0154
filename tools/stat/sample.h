// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "stat/block.h"

namespace diwarp::tools {

/// Which processes are looked at.
struct Selection {
  std::vector<pid_t> processes = {};  ///< none: all of the user
  bool all_users = false;             ///< all that may be looked at
};

struct DeviceSample {
  pid_t process = 0;  ///< as this program sees it
  std::string program;
  DeviceSnapshot device;
};

/// Why something is not shown: a sentence.
struct Problem {
  pid_t process = 0;
  std::string message;
  bool no_device = false;  ///< it runs, and may be about to open one
};

/// The counters of all devices at one moment, and what could not be read.
struct Sample {
  uint64_t now = 0;  ///< CLOCK_BOOTTIME, ns
  std::vector<DeviceSample> devices = {};
  std::vector<Problem> problems = {};
  bool others_left_out = false;  ///< there are processes of other users
};

/// Throws Interrupted.
Sample take_sample(const Selection& selection);

/// Takes out of the sample what it says of processes that were asked for and have no device in it.
std::vector<Problem> take_missing(Sample& sample, const Selection& selection);

/// The counters behind an open file. Throws BadBlock where it is no sealed memfd of counters.
DeviceSnapshot read_counters(int file);

}  // namespace diwarp::tools
