// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "diwarp/log.h"

namespace diwarp::test {

/// What is logged while this lives, from this level on, of all threads. The log is the process's:
/// one at a time.
class LogLines {
 public:
  struct Line {
    LogLevel level;
    std::string device;
    uint32_t qp_number;
    std::string message;
  };

  explicit LogLines(LogLevel level) {
    set_log_callback([this](const LogRecord& record) {
      const std::lock_guard lock(mutex_);
      lines_.push_back({record.level, std::string(record.device), record.qp_number,
                        std::string(record.message)});
    });
    set_log_level(level);
  }
  ~LogLines() {
    set_log_level(LogLevel::warn);
    set_log_callback({});
  }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;

  std::vector<Line> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }
  /// Those of this level and queue pair that have this in their message.
  std::vector<Line> with(LogLevel level, uint32_t qp_number, std::string_view part) const {
    std::vector<Line> found = all();
    std::erase_if(found, [&](const Line& line) {
      return line.level != level || line.qp_number != qp_number ||
             line.message.find(part) == std::string::npos;
    });
    return found;
  }
  size_t count(LogLevel level, uint32_t qp_number, std::string_view part) const {
    return with(level, qp_number, part).size();
  }
  /// All of them, for a test that fails.
  std::string text() const {
    std::string text;
    for (const Line& line : all())
      text += std::string(to_string(line.level)) + ' ' + line.device + ' ' +
              std::to_string(line.qp_number) + ": " + line.message + '\n';
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Line> lines_;
};

}  // namespace diwarp::test
