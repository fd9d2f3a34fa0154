// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace diwarp::log {

/// Writes lines to a descriptor of any kind, without waiting for it and without raising a signal.
/// One thread at a time.
class LineWriter {
 public:
  /// `line` ends with a newline. False where it is lost, or its end. Whole are the lines of no more
  /// than PIPE_BUF bytes in pipes and, in files, all.
  bool write(int descriptor, std::string_view line) noexcept;

 private:
  bool cut_ = false;  // the last line lacks its end
};

}  // namespace diwarp::log
