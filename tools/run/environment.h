// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace diwarp::tools {

/// What the user asks of the drop-in's devices.
struct RunOptions {
  std::vector<std::string> devices;  ///< NAME=ADDR each
  std::string spin;
  int cpu = -1;
  std::string log;
  std::string ud;       ///< "reliable", or nothing
  std::string ud_rate;  ///< bytes a second, as in 500K
  std::string receive_wait;
  bool crc = false;
  bool counters = false;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

/// The value of LD_LIBRARY_PATH that has `folder` first, and what this process's has after it.
std::string library_path(const std::string& folder);

/// The variables that have a program run over diwarp. Throws Failure for a device or a rate that is
/// none.
Variables drop_in_environment(const RunOptions& options, const std::string& folder);

/// A line NAME=VALUE each, as files of CI systems and `env` take them.
std::string as_lines(const Variables& variables);

}  // namespace diwarp::tools
