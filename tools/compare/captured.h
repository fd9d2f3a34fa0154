// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "common/child.h"

namespace diwarp::tools {

/// A child whose output is read.
class Captured {
 public:
  /// Runs `body` on processor `cpu` (-1: any) with its output going here; ends with what it
  /// returns.
  Captured(int cpu, const std::function<int()>& body);
  /// Runs a program found in PATH. Status 127 if there is none.
  Captured(int cpu, const std::vector<std::string>& command);

  /// Waits until it ends, and for all it prints. False at the deadline. Throws Interrupted.
  bool finish(Time deadline);
  bool finished() const { return child_->finished(); }

  int status() const { return child_->status(); }  ///< as Child's
  /// Standard output and error.
  const std::string& output() const { return output_; }

 private:
  bool read_output(Time deadline);

  UniqueFd pipe_;
  std::optional<Child> child_;  // always there
  std::string output_;
};

/// Whether a program of this name is in PATH.
bool is_installed(const std::string& program);

}  // namespace diwarp::tools
