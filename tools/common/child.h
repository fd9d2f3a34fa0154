// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>

#include "common/control.h"

namespace diwarp::tools {

/// A forked process, which ends with its parent; killed and reaped at the latest with this object.
/// Made in a process without other threads.
class Child {
 public:
  /// Ends with what `body` returns; with 1 if it throws.
  explicit Child(const std::function<int()>& body);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  /// Waits until it ends. False at the deadline.
  bool finish(Time deadline);
  bool finished() const { return pid_ < 0; }

  int status() const { return status_; }  ///< exit status, or kSignalled + what ended it
  static constexpr int kSignalled = 256;

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

}  // namespace diwarp::tools
