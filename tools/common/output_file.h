// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iostream>
#include <string>

#include "common/failure.h"

namespace diwarp::tools {

/// What an option like --json FILE names: a file, standard output for "-", or nothing for "".
class OutputFile {
 public:
  /// Throws Failure where the file cannot be written.
  explicit OutputFile(const std::string& name) : wanted_(!name.empty()), standard_(name == "-") {
    if (!wanted_ || standard_) return;
    file_.open(name);
    if (!file_) throw Failure("Cannot write " + name + ": name a file in a folder that exists.");
  }

  bool wanted() const { return wanted_; }
  std::ostream& stream() { return standard_ ? std::cout : static_cast<std::ostream&>(file_); }

 private:
  bool wanted_;
  bool standard_;
  std::ofstream file_;
};

}  // namespace diwarp::tools
