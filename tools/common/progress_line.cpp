// SPDX-License-Identifier: Apache-2.0
#include "common/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace diwarp::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

}  // namespace

ProgressLine::ProgressLine(std::string what, uint64_t total)
    : what_(std::move(what)),
      total_(std::max(total, uint64_t{1})),
      terminal_(::isatty(STDERR_FILENO) == 1),
      next_(steady_clock::now() + milliseconds(1000)) {}

ProgressLine::~ProgressLine() {
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void ProgressLine::show(uint64_t done) {
  const Time now = steady_clock::now();
  if (now < next_) return;
  next_ = now + milliseconds(500);
  shown_ = true;
  std::fprintf(stderr, "\r\033[K%s: %llu %%", what_.c_str(),
               static_cast<unsigned long long>(100 * done / total_));
  std::fflush(stderr);
}

}  // namespace diwarp::tools
