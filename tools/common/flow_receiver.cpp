// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/flow.h"
#include "common/mark.h"
#include "common/pairing.h"
#include "common/pattern.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

/// A credit goes out at the latest when so long nothing came.
constexpr Duration kIdle = std::chrono::microseconds(50);

/// Messages too short to carry a whole number cannot be told from duplicates.
constexpr uint64_t kNumbered = 4;

/// After so many polls in a row that bring nothing, all that had come to this host has been taken.
constexpr int kQuietPolls = 64;

}  // namespace

FlowReceiver::FlowReceiver(Endpoint& endpoint, Control& control, const FlowPlan& plan)
    : endpoint_(endpoint),
      control_(control),
      plan_(plan),
      poller_(endpoint.completion_queue(), control),
      written_(plan.operation == Operation::write),
      recorded_(plan.operation == Operation::write_record),
      message_size_(written_ ? plan.size - 1 : plan.size),
      patience_(patience(plan.size, plan.window, plan.rate)),
      limit_(control.timeout() + patience_) {
  if (is_reliable(plan.transport)) patience_ = limit_;
}

FlowCount FlowReceiver::receive(uint64_t count) {
  count_ = {};
  first_ = end_;
  end_ += count;
  expected_ = std::max(expected_, first_);
  settled_ = first_;
  came_.assign(plan_.verify ? count : 0, false);
  await_end();
  await_stragglers();
  count_.next = expected_;
  return count_;
}

/// Until the sender says that it sent all.
void FlowReceiver::await_end() {
  Time last = steady_clock::now();
  while (true) {
    const Time now = steady_clock::now();
    if (take_completions(now + (credit_is_due() ? kIdle : patience_))) {
      last = now;
      continue;
    }
    give_credit();
    if (control_.pending()) {
      if (take_word_of_sender()) return;
      last = now;
    } else if (now - last > limit_) {
      throw Failure("Nothing came from " + endpoint_.peer().to_string() + " for " +
                    to_text(limit_) + ".");
    }
  }
}

/// True if it says that it sent all.
bool FlowReceiver::take_word_of_sender() {
  const Json word = control_.next();
  if (word["type"] == "sent") return true;
  if (word["type"] != "skip") throw Failure("The peer said something unexpected in the run.");
  end_skipped(number_in(word, "to", 0, end_));
  return false;
}

/// The sender counts all before `to` as arrived or lost, and waits for the answer before it writes
/// their slots again. Until then their records can be verified.
void FlowReceiver::end_skipped(uint64_t to) {
  if (recorded_) end_open_records();
  expected_ = std::max(expected_, to);
  settled_ = std::max(settled_, expected_);
  credited_ = expected_;
  control_.send({{"type", "skipped"}});
}

/// An open record could be written on when its slot has the next one already. It is over when its
/// last byte came, or nothing more did for record_timeout.
void FlowReceiver::end_open_records() {
  const Time deadline = steady_clock::now() + limit_;
  for (int quiet = 0; quiet < kQuietPolls && steady_clock::now() < deadline; ++quiet)
    if (take_completions(steady_clock::now()) || !endpoint_.queue_pair().open_records().empty())
      quiet = -1;
}

/// Messages that were sent may still be on their way; over UD they may also be lost.
void FlowReceiver::await_stragglers() {
  while (count_.received + count_.partial < end_ - first_ &&
         take_completions(steady_clock::now() + patience_)) {
  }
  give_credit();
}

/// False if nothing came until the deadline, or the peer said something.
bool FlowReceiver::take_completions(Time deadline) {
  const auto completions = poller_.next(deadline, [this] { return next_is_written(); });
  for (const WorkCompletion& completion : completions) take(completion);
  const bool written = next_is_written();
  while (next_is_written()) take_written();
  return written || !completions.empty();
}

void FlowReceiver::take(const WorkCompletion& completion) {
  endpoint_.check(completion);
  if (!is_receive(completion)) {
    --credits_open_;
    return;
  }
  if (endpoint_.is_from_peer(completion)) {
    if (recorded_)
      take_record(completion);
    else
      take_message(endpoint_.message(completion));
  }
  endpoint_.post_receive_again(completion.wr_id);
  give_credit_in_time();
}

/// Before the credit for it, the slot of the next message holds it or the one before it.
bool FlowReceiver::next_is_written() {
  if (!written_ || expected_ == end_) return false;
  const auto slot = static_cast<uint32_t>(expected_ % plan_.window);
  return is_marked(endpoint_.receive_slot(slot), expected_ / plan_.window);
}

void FlowReceiver::take_written() {
  const auto slot = static_cast<uint32_t>(expected_ % plan_.window);
  take_message(contents_of(endpoint_.receive_slot(slot)));
  give_credit_in_time();
}

void FlowReceiver::give_credit_in_time() {
  const uint64_t quantum = std::max(plan_.window / 4, 1u);
  const uint64_t upto = creditable();
  if (upto >= credited_ + quantum || upto == end_) give_credit();
}

void FlowReceiver::take_message(std::span<const std::byte> message) {
  const auto told = written_ ? std::nullopt : number_of(message, expected_);
  const uint64_t number = told.value_or(expected_);
  // A latecomer of the warm-up.
  if (number < first_) return;
  ++count_.received;
  note(number, fault_in(message, number), plan_.size);
}

/// The number comes with the record, since the bytes that would have it may be missing.
void FlowReceiver::take_record(const WorkCompletion& record) {
  if (record.immediate < first_) return;
  ++(is_whole(record) ? count_.received : count_.partial);
  note(record.immediate, fault_in_record(record), record.valid_bytes);
}

void FlowReceiver::note(uint64_t number, const std::string& fault, uint64_t valid_bytes) {
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
std::string FlowReceiver::fault_in(std::span<const std::byte> message, uint64_t number) {
  if (message.size() != message_size_) return "came as one of " + std::to_string(message.size());
  if (number >= end_) return "was never sent";
  if (is_reliable(plan_.transport) && number != expected_) return "came out of order";
  if (!plan_.verify) return "";
  if (came_before(number)) return "came twice";
  const auto wrong = difference(message, number);
  return wrong ? "arrived with wrong contents from byte " + std::to_string(*wrong) + " on" : "";
}

std::string FlowReceiver::fault_in_record(const WorkCompletion& record) {
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

/// The messages that may be credited. The slot of a Write-Record that is to be verified must stay
/// as it is until its completion has come.
uint64_t FlowReceiver::creditable() const {
  return recorded_ && plan_.verify ? std::min(settled_, expected_) : expected_;
}

std::optional<size_t> FlowReceiver::difference(std::span<const std::byte> message,
                                               uint64_t number) const {
  // Once is enough to tell that a run is bad.
  if (written_ && count_.wrong == 0) return lasting_difference(message, number, Way::there);
  return first_difference(message, number, Way::there);
}

bool FlowReceiver::came_before(uint64_t number) {
  if (!recorded_ && message_size_ < kNumbered) return false;
  const bool before = came_[number - first_];
  came_[number - first_] = true;
  return before;
}

bool FlowReceiver::credit_is_due() const { return creditable() > credited_; }

void FlowReceiver::give_credit() {
  const EndpointShape& shape = endpoint_.shape();
  // With all slots in use the next credit tells this one's news, too.
  if (!credit_is_due() || credits_open_ == shape.send_slots) return;
  const auto slot = static_cast<uint32_t>(credits_ % shape.send_slots);
  const uint64_t upto = creditable();
  std::memcpy(endpoint_.send_slot(slot).data(), &upto, sizeof upto);
  endpoint_.post_send(slot);
  credited_ = upto;
  ++credits_;
  ++credits_open_;
}

}  // namespace diwarp::tools
