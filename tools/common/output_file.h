// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/unique_fd.h"

namespace diwarp::tools {

/// What an option like --json FILE names: a file, standard output for "-", or nothing for "".
/// Standard output is checked when the program ends (common/program.h).
class OutputFile {
 public:
  /// Throws Failure where the file cannot be made.
  explicit OutputFile(const std::string& name);

  bool wanted() const { return !name_.empty(); }
  /// Adds to the file, at once. Throws Failure where the file does not take it.
  void write(const std::string& text);
  /// Closes the file, which tells some errors first. Throws Failure on one.
  void finish();

 private:
  [[noreturn]] void fail(int error) const;

  std::string name_;
  UniqueFd file_;
};

}  // namespace diwarp::tools
