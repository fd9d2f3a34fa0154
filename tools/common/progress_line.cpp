// SPDX-License-Identifier: Apache-2.0
#include "common/progress_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace diwarp::tools {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Messages that are shorter are counted as wholes.
constexpr uint64_t kLong = uint64_t{1} << 20;

ProgressLine* current = nullptr;

uint64_t bytes_moved(const Device& device) {
  uint64_t sum = 0;
  for (const char* name : {"tx_bytes", "rx_bytes", "rc_tx_bytes", "rc_rx_bytes"})
    sum += device.counter(name);
  return sum;
}

}  // namespace

ProgressLine::ProgressLine(std::string what, uint64_t total, uint64_t message_bytes,
                           const Device& device)
    : what_(std::move(what)),
      total_(total),
      message_bytes_(message_bytes),
      device_(device),
      moved_before_(bytes_moved(device)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      next_(steady_clock::now() + milliseconds(1000)) {
  current = this;
}

ProgressLine::~ProgressLine() {
  current = nullptr;
  if (shown_) std::fprintf(stderr, "\r\033[K");
}

void ProgressLine::tick() {
  if (current != nullptr && current->terminal_) current->look();
}

uint64_t ProgressLine::percent(uint64_t done, uint64_t total, uint64_t bytes,
                               uint64_t message_bytes) {
  const auto all = static_cast<double>(std::max<uint64_t>(total, 1));
  const bool by_bytes = message_bytes >= kLong && bytes > 0;  // not every device counts them
  const double messages = by_bytes ? static_cast<double>(bytes) / static_cast<double>(message_bytes)
                                   : static_cast<double>(done);
  return std::min<uint64_t>(static_cast<uint64_t>(100 * messages / all), 99);
}

void ProgressLine::look() {
  const Time now = steady_clock::now();
  if (now < next_) return;
  next_ = now + milliseconds(500);
  shown_ = true;
  const uint64_t moved = bytes_moved(device_) - moved_before_;
  std::fprintf(stderr, "\r\033[K%s: %llu %%", what_.c_str(),
               static_cast<unsigned long long>(percent(done_, total_, moved, message_bytes_)));
  std::fflush(stderr);
}

}  // namespace diwarp::tools
