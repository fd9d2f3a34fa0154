// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "common/control.h"

namespace diwarp::tools {

/// A forked process whose output is read; killed and reaped at the latest with this object. Made in
/// a process without other threads.
class Child {
 public:
  /// Runs `body` on processor `cpu` (-1: any) with its output going here; ends with what it returns.
  Child(int cpu, const std::function<int()>& body);
  /// Runs a program found in PATH. Status 127 if there is none.
  Child(int cpu, const std::vector<std::string>& command);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// Waits until it ends, and for all it prints. False at the deadline.
  bool finish(Time deadline);
  bool finished() const { return pid_ < 0; }

  int status() const { return status_; }  ///< exit status, or 128 + the signal that ended it
  /// Standard output and error.
  const std::string& output() const { return output_; }

 private:
  bool read_output(Time deadline);

  pid_t pid_ = -1;
  UniqueFd pipe_;
  int status_ = 0;
  std::string output_;
};

/// Whether a program of this name is in PATH.
bool is_installed(const std::string& program);

}  // namespace diwarp::tools
