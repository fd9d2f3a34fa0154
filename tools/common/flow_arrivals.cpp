// SPDX-License-Identifier: Apache-2.0
#include "common/flow_arrivals.h"

#include <algorithm>
#include <cstring>

#include "common/mark.h"
#include "common/pattern.h"

namespace diwarp::tools {
namespace {

/// Messages too short to carry a whole number cannot be told from duplicates.
constexpr uint64_t kNumbered = 4;

}  // namespace

FlowArrivals::FlowArrivals(Endpoint& endpoint, const FlowPlan& plan)
    : endpoint_(endpoint),
      plan_(plan),
      written_(plan.operation == Operation::write),
      recorded_(plan.operation == Operation::write_record),
      in_segments_(recorded_ && plan.completion == RecordCompletion::per_segment),
      message_size_(written_ ? plan.size - 1 : plan.size),
      slots_(in_segments_ ? plan.window : 0) {}

void FlowArrivals::begin(uint64_t count) {
  count_ = {};
  first_ = end_;
  end_ += count;
  expected_ = std::max(expected_, first_);
  settled_ = first_;
  came_.assign(plan_.verify ? count : 0, false);
  slots_.assign(slots_.size(), {});
}

FlowCount FlowArrivals::count() const {
  FlowCount count = count_;
  count.next = expected_;
  return count;
}

/// Before the credit for it, the slot of the next message holds it or the one before it.
bool FlowArrivals::slot_is_marked() {
  const auto slot = static_cast<uint32_t>(expected_ % plan_.window);
  return is_marked(endpoint_.receive_slot(slot), expected_ / plan_.window);
}

void FlowArrivals::take_written() {
  const auto slot = static_cast<uint32_t>(expected_ % plan_.window);
  take_message(contents_of(endpoint_.receive_slot(slot)));
}

void FlowArrivals::take(const WorkCompletion& receive) {
  if (in_segments_)
    take_segment(receive);
  else if (recorded_)
    take_record(receive);
  else
    take_message(endpoint_.message(receive));
}

uint64_t FlowArrivals::skip(uint64_t to) {
  expected_ = std::max(expected_, to);
  settled_ = std::max(settled_, expected_);
  return expected_;
}

void FlowArrivals::take_message(std::span<const std::byte> message) {
  const auto told = written_ ? std::nullopt : number_of(message, expected_);
  const uint64_t number = told.value_or(expected_);
  // A latecomer of the warm-up.
  if (number < first_) return;
  ++count_.received;
  note(number, fault_in(message, number), plan_.size);
}

/// The number comes with the record, since the bytes that would have it may be missing.
void FlowArrivals::take_record(const WorkCompletion& record) {
  if (record.immediate < first_) return;
  if (is_whole(record)) {
    ++count_.received;
  } else {
    ++count_.partial;
    count_.gaps.add(record.validity);
  }
  note(record.immediate, fault_in_record(record), record.valid_bytes);
}

/// A message is partial from its first segment on until its last one has come.
void FlowArrivals::take_segment(const WorkCompletion& segment) {
  const uint64_t number = segment.immediate;
  Slot& slot = slots_[number % slots_.size()];
  // A latecomer of the warm-up, or of a message that the slot's next one follows already.
  if (number < first_ || (slot.number && *slot.number > number)) return;
  const std::string fault = fault_in_segment(segment);
  if (!fault.empty()) return note(number, fault, 0);
  if (slot.number != number) {
    slot = {.number = number};
    ++count_.partial;
    expected_ = std::max(expected_, number);
  }
  // A segment that comes twice shows twice.
  const uint64_t bytes = std::min<uint64_t>(segment.byte_count, plan_.size - slot.bytes);
  slot.bytes += bytes;
  count_.valid_bytes += bytes;
  if (slot.whole || slot.bytes < plan_.size) return;
  slot.whole = true;
  --count_.partial;
  ++count_.received;
  note(number, "", 0);
}

std::string FlowArrivals::fault_in_segment(const WorkCompletion& segment) {
  const uint64_t number = segment.immediate;
  const auto [memory, offset] = endpoint_.recorded_segment(segment);
  if (!segment.has_immediate || memory.size() != segment.byte_count)
    return "came as another record";
  if (number >= end_) return "was never sent";
  // As of whole records: what is late may find the bytes of the slot's next message.
  if (!plan_.verify || number < settled_) return "";
  if (sent_number_ != number) {
    sent_.resize(plan_.size);
    fill(sent_, number, Way::there);
    sent_number_ = number;
  }
  if (std::ranges::equal(memory, std::span(sent_).subspan(offset, memory.size()))) return "";
  return "has wrong contents in the segment at byte " + std::to_string(offset);
}

void FlowArrivals::note(uint64_t number, const std::string& fault, uint64_t valid_bytes) {
  if (fault.empty()) {
    count_.valid_bytes += valid_bytes;
  } else if (++count_.wrong == 1) {
    count_.first_wrong = "Message " + std::to_string(number) + " of " + std::to_string(plan_.size) +
                         " bytes " + fault + ".";
  }
  if (number < end_) expected_ = std::max(expected_, number + 1);
  while (plan_.verify && settled_ < end_ && came_[settled_ - first_]) ++settled_;
}

/// "" if the message is as it should be.
std::string FlowArrivals::fault_in(std::span<const std::byte> message, uint64_t number) {
  if (message.size() != message_size_) return "came as one of " + std::to_string(message.size());
  if (number >= end_) return "was never sent";
  if (is_reliable(plan_.transport) && number != expected_) return "came out of order";
  if (!plan_.verify) return "";
  if (came_before(number)) return "came twice";
  const auto wrong = difference(message, number);
  return wrong ? "arrived with wrong contents from byte " + std::to_string(*wrong) + " on" : "";
}

std::string FlowArrivals::fault_in_record(const WorkCompletion& record) {
  const uint64_t number = record.immediate;
  const std::span<const std::byte> memory = endpoint_.message(record);
  if (!record.has_immediate || memory.size() != plan_.size) return "came as another record";
  if (number >= end_) return "was never sent";
  if (is_reliable(plan_.transport) && number != expected_) return "came out of order";
  if (!plan_.verify) return "";
  if (came_before(number)) return "came twice";
  // Its slot is not used again before it is credited (see creditable()), or written off. A message
  // that comes even after that was delayed somewhere in the network.
  if (number < settled_) return "";
  std::vector<std::byte> sent(plan_.size);
  fill(sent, number, Way::there);
  for (const auto& [offset, length] : record.validity.ranges()) {
    if (std::memcmp(&memory[offset], &sent[offset], length) != 0)
      return "has wrong contents in the valid bytes from " + std::to_string(offset) + " on";
  }
  return "";
}

std::optional<size_t> FlowArrivals::difference(std::span<const std::byte> message,
                                               uint64_t number) const {
  // Once is enough to tell that a run is bad.
  if (written_ && count_.wrong == 0) return lasting_difference(message, number, Way::there);
  return first_difference(message, number, Way::there);
}

bool FlowArrivals::came_before(uint64_t number) {
  if (!recorded_ && message_size_ < kNumbered) return false;
  const bool before = came_[number - first_];
  came_[number - first_] = true;
  return before;
}

}  // namespace diwarp::tools
