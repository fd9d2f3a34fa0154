// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <string>

#include "support/catch.h"

namespace diwarp::test {

/// The text that goes to stderr while this lives, of all threads. It holds two descriptors.
class CapturedStderr {
 public:
  CapturedStderr() : file_(std::tmpfile()), before_(::dup(STDERR_FILENO)) {
    REQUIRE(file_ != nullptr);
    REQUIRE(::dup2(::fileno(file_), STDERR_FILENO) >= 0);
  }
  ~CapturedStderr() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    std::fclose(file_);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  /// Its first 4,096 bytes.
  std::string text() const {
    std::string result(4096, '\0');
    const ssize_t bytes = ::pread(::fileno(file_), result.data(), result.size(), 0);
    result.resize(bytes > 0 ? static_cast<size_t>(bytes) : 0);
    return result;
  }

 private:
  std::FILE* file_;
  int before_;
};

}  // namespace diwarp::test
