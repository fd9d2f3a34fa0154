// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_reader.h"

#include <algorithm>

#include "base/validity_pool.h"

namespace diwarp::rnic {

namespace {

constexpr Duration kLongest = std::chrono::hours(24 * 365);  // keeps sums of times within bounds

Duration chosen(Duration of_request, Duration of_queue_pair) {
  return std::min(of_request > Duration::zero() ? of_request : of_queue_pair, kLongest);
}

}  // namespace

UdReader::UdReader(const ddp::ProtectionContext& protection, SendQueue& sends,
                   dgram::Identity& identity, Counters& counters, const ReadOptions& options,
                   uint32_t max_ranges, Waker& waker)
    : protection_(protection),
      sends_(sends),
      counters_(counters),
      options_(options),
      waker_(waker),
      reads_(options_, max_ranges),
      parts_(identity, options_) {}

// --- The life of a Read.

UdReader::Begun UdReader::begin_read(SendEntry& entry, Time now) {
  if (reads_.full()) {  // guard(read-progress): condition => false
    begin_refused_ = true;
    return Begun::full;
  }
  UdRead* const begun = parts_.reserve() ? reads_.begin() : nullptr;
  if (begun == nullptr) return Begun::no_memory;
  UdRead& read = *begun;
  sends_.hand_over();
  const auto* given = std::get_if<ReadLimits>(&entry.operands);
  const ReadLimits limits = given == nullptr ? ReadLimits{} : *given;
  const Duration deadline = chosen(limits.deadline, options_.deadline);
  read.entry = &entry;
  read.timeout = chosen(limits.timeout, options_.timeout);
  read.deadline = now + (deadline == Duration::zero() ? kLongest : deadline);
  // guard(read-progress): => read.retries_left = options_.retries;
  read.retries_left = limits.retries < 0 ? options_.retries : static_cast<uint32_t>(limits.retries);
  read.retrying = false;
  read.last_sign = now;
  ask_from_the_start(read, now);
  next_expiry_ = std::min(next_expiry_, reads_.due(read));
  return Begun::begun;
}

void UdReader::leave(UdRead& read) {
  while (UdReadPart* part = read.parts.front()) parts_.revoke(*part);
  reads_.end(read);
}

void UdReader::finish(UdRead& read, WcStatus status, uint32_t vendor_error) {
  SendEntry& entry = *read.entry;
  entry.operands = make_validity_map(entry.length, read.valid);
  if (status == WcStatus::timeout) counters_.add(Counter::read_timeouts);
  reads_.hand_on_sign(read);  // guard(read-progress)
  leave(read);
  sends_.answered(entry, status, vendor_error);
  if (!begin_refused_) return;  // guard(read-progress): => return;
  begin_refused_ = false;
  waker_.wake();
}

void UdReader::reset() {
  while (UdRead* read = reads_.front()) leave(*read);
  begin_refused_ = false;
  next_expiry_ = Time::max();
}

// --- What is asked for.

void UdReader::add_part(UdRead& read, uint64_t begin, uint64_t length) {
  parts_.add(read, begin, length);
  set_idle(false);                                          // guard(reads)
  if (read.retrying) counters_.add(Counter::read_retries);  // guard(read-progress)
}

/// Asks for the missing bytes after those that were asked for, as far as the window goes.
void UdReader::ask(UdRead& read) {
  bool asked = false;
  // guard(read-progress): without read.open_parts < options_.window &&
  for (; read.open_parts < options_.window && read.has_more(); asked = true) {
    const auto [begin, end] = read.valid.first_gap(read.scanned, read.entry->length);
    // guard(read-progress): => read.scanned = end;
    read.scanned = std::min<uint64_t>(end, begin + rdmap::kMaxReadRequest);
    add_part(read, begin, read.scanned - begin);
  }
  if (asked) waker_.wake();
}

void UdReader::ask_from_the_start(UdRead& read, Time now) {
  read.scanned = 0;
  read.last_try = now;
  read.last_nudge = now;
  if (read.entry->length != 0) return ask(read);  // guard(read-progress): => return ask(read);
  add_part(read, 0, 0);
  waker_.wake();
}

// --- Time.

void UdReader::expire(Time now) {
  if (now < next_expiry_) return;
  Time next = Time::max();
  UdRead* read = reads_.front();
  while (read != nullptr) {
    UdRead* const following = reads_.next(*read);
    if (!is_over(*read, now)) next = std::min(next, reads_.due(*read));
    read = following;
  }
  next_expiry_ = next;
}

/// Does what is due. True: the Read has ended.
bool UdReader::is_over(UdRead& read, Time now) {
  const bool silent = now >= reads_.silent_at(read);
  // guard(read-progress): condition => silent && read.retries_left == 0
  // guard(read-progress): condition => now >= read.deadline || silent
  if (now >= read.deadline || (silent && read.retries_left == 0)) {
    finish(read, WcStatus::timeout);
    return true;
  }
  // guard(read-progress): now >= read.nudge_due() && read.has_more() => false
  if (silent)
    retry(read, now);
  else if (now >= read.nudge_due() && read.has_more())
    nudge(read, now);
  return false;
}

void UdReader::retry(UdRead& read, Time now) {
  --read.retries_left;  // guard(read-progress)
  read.retrying = true;
  while (UdReadPart* part = read.parts.front()) parts_.revoke(*part);  // guard(read-progress)
  ask_from_the_start(read, now);
}

void UdReader::nudge(UdRead& read, Time now) {
  read.last_nudge = now;
  for (UdReadPart* part = read.parts.front(); part != nullptr; part = read.parts.next(*part))
    if (part->asked) part->close();
  ask(read);
}

}  // namespace diwarp::rnic
