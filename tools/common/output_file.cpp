// SPDX-License-Identifier: Apache-2.0
#include "common/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>

#include "common/failure.h"
#include "common/interrupt.h"

namespace diwarp::tools {
namespace {

constexpr const char* kStandardOutput = "-";
constexpr mode_t kMode = 0666;  // less the umask

}  // namespace

OutputFile::OutputFile(const std::string& name) : name_(name) {
  if (!wanted() || name_ == kStandardOutput) return;
  file_ = UniqueFd(::open(name_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode));
  if (file_) return;
  if (errno == ENOENT)
    throw Failure("Cannot write " + name_ + ": name a file in a folder that exists.");
  fail(errno);
}

void OutputFile::write(const std::string& text) {
  if (!wanted()) return;
  if (name_ == kStandardOutput) {
    std::cout << text << std::flush;
    return;
  }
  for (size_t written = 0; written < text.size();) {
    const ssize_t more = ::write(file_.get(), text.data() + written, text.size() - written);
    if (more >= 0)
      written += static_cast<size_t>(more);
    else if (errno == EINTR)
      check_interrupted();
    else
      fail(errno);
  }
}

void OutputFile::finish() {
  if (!file_) return;
  if (::close(file_.release()) != 0) fail(errno);
}

void OutputFile::fail(int error) const {
  throw Failure(name_ + " cannot be written: " + std::strerror(error) + ".");
}

}  // namespace diwarp::tools
