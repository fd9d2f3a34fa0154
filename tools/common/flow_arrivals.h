// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/endpoint.h"
#include "common/flow.h"

namespace diwarp::tools {

/// The messages of a flow that came: which, whether each is as it should be, and up to which the
/// sender may use its slots again.
class FlowArrivals {
 public:
  FlowArrivals(Endpoint& endpoint, const FlowPlan& plan);

  /// The next `count` messages are to come.
  void begin(uint64_t count);
  /// Of the messages since begin().
  FlowCount count() const;
  bool all_came() const {
    // A message whose segments come one by one may still become whole.
    const uint64_t partial = in_segments_ ? 0 : count_.partial;
    return count_.received + partial >= end_ - first_;
  }
  /// After the last message that is to come.
  uint64_t end() const { return end_; }
  /// Messages are Write-Records, whose slots are used again.
  bool recorded() const { return recorded_; }

  /// The next message is a Write, and it is there.
  bool next_is_written() { return written_ && expected_ != end_ && slot_is_marked(); }
  void take_written();
  /// A completion of a message.
  void take(const WorkCompletion& receive);
  /// All before `to` count as arrived or lost. Returns which message is expected then.
  uint64_t skip(uint64_t to);

  /// The messages that may be credited. The slot of a Write-Record that is to be verified must stay
  /// as it is until its completion has come; one in segments is verified as these come.
  uint64_t creditable() const {
    const bool stays = recorded_ && plan_.verify && !in_segments_;
    return stays ? std::min(settled_, expected_) : expected_;
  }

 private:
  bool slot_is_marked();
  void take_message(std::span<const std::byte> message);
  void take_record(const WorkCompletion& record);
  void take_segment(const WorkCompletion& segment);
  void note(uint64_t number, const std::string& fault, uint64_t valid_bytes);
  std::string fault_in(std::span<const std::byte> message, uint64_t number);
  std::string fault_in_record(const WorkCompletion& record);
  std::string fault_in_segment(const WorkCompletion& segment);
  std::optional<size_t> difference(std::span<const std::byte> message, uint64_t number) const;
  bool came_before(uint64_t number);

  Endpoint& endpoint_;
  const FlowPlan plan_;
  const bool written_;           // messages are Writes, and do not show in the completion queue
  const bool recorded_;          // they are Write-Records, whose slots are used again
  const bool in_segments_;       // of which each segment shows in the completion queue
  const uint64_t message_size_;  // of the contents
  FlowCount count_;
  uint64_t first_ = 0;      // number of the first message since begin()
  uint64_t end_ = 0;        // and after its last
  uint64_t expected_ = 0;   // one more than the highest number that came
  std::vector<bool> came_;  // with verify: which of these
  uint64_t settled_ = 0;    // with verify: numbers below have come, or were skipped

  /// What came of the message that is in a slot, of those that come in segments.
  struct Slot {
    std::optional<uint64_t> number;
    uint64_t bytes = 0;
    bool whole = false;
  };
  std::vector<Slot> slots_;
  std::vector<std::byte> sent_;  // the contents of a message whose segments are compared with it
  std::optional<uint64_t> sent_number_;
};

}  // namespace diwarp::tools
