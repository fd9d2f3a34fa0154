// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/connection.h>
#include <diwarp/device.h>

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "compat/common/process.h"

namespace diwarp::compat {

/// The indices, 1 to 255, of the queue pairs that meet their peers at one port. One that was given
/// back is used again as late as possible: a peer may still name it.
class MeetingIndices {
 public:
  /// 0 where all are used.
  uint8_t take();
  void give_back(uint8_t index) { used_[index] = false; }

 private:
  std::array<bool, 256> used_{true};  // 0 is none
  uint8_t last_ = 0;
};

/// The numbers of queue pairs whose peers are named by GID and number, without the connection
/// manager. A number tells where its queue pair is met: the lower 16 bits are a TCP port of this
/// process (a MeetingPoint), above them stands an index there.
class MeetingNumbers {
 public:
  explicit MeetingNumbers(const diwarp::Device& device) : device_(device) {}
  MeetingNumbers(const MeetingNumbers&) = delete;
  MeetingNumbers& operator=(const MeetingNumbers&) = delete;

  /// Throws diwarp::Error where no further port can be had.
  uint32_t take();
  /// Does nothing in a forked child.
  void give_back(uint32_t number);

  static uint16_t port_of(uint32_t number) { return static_cast<uint16_t>(number); }

 private:
  struct Port {
    explicit Port(const diwarp::Device& device) : point(device, 0) {}
    uint16_t number() const { return point.address().port(); }

    MeetingPoint point;
    MeetingIndices indices;
  };

  const Process process_;
  const diwarp::Device& device_;
  std::mutex mutex_;  // guards ports_
  std::vector<std::unique_ptr<Port>> ports_;
};

/// A number of MeetingNumbers' for as long as this lives; 0, which stands for any number, from
/// null.
class MeetingNumber {
 public:
  explicit MeetingNumber(MeetingNumbers* of) : of_(of), number_(of != nullptr ? of->take() : 0) {}
  ~MeetingNumber() {
    if (of_ != nullptr) of_->give_back(number_);
  }
  MeetingNumber(const MeetingNumber&) = delete;
  MeetingNumber& operator=(const MeetingNumber&) = delete;

  uint32_t get() const { return number_; }

 private:
  MeetingNumbers* const of_;
  const uint32_t number_;
};

}  // namespace diwarp::compat
