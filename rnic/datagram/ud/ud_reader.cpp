// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_reader.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/validity_pool.h"
#include "rnic/datagram/ud/ud_read.h"

namespace diwarp::rnic {

namespace {

constexpr size_t kMaxChains = 4096;
constexpr Duration kLongest = std::chrono::hours(24 * 365);  // keeps sums of times within bounds

Duration chosen(Duration of_request, Duration of_queue_pair) {
  return std::min(of_request > Duration::zero() ? of_request : of_queue_pair, kLongest);
}

}  // namespace

UdReader::UdReader(const ddp::ProtectionContext& protection, SendQueue& sends,
                   dgram::Identity& identity, Counters& counters, const ReadOptions& options,
                   uint32_t max_ranges, std::function<void()> wake)
    : protection_(protection),
      sends_(sends),
      identity_(identity),
      counters_(counters),
      options_(options),
      wake_(std::move(wake)),
      sink_stags_(random_sip_key()),  // guard(drawn-keys): random_sip_key() => SipKey{}
      max_ranges_(max_ranges) {}

UdReader::~UdReader() = default;

/// Of what a peer must repeat in a response or a Challenge. Offsets up to it must not wrap.
uint64_t UdReader::next_sink_offset() {
  uint64_t offset = identity_.next_nonce();
  while (offset > UINT64_MAX - rdmap::kMaxReadRequest) offset = identity_.next_nonce();
  return offset;
}

// --- The life of a Read.

UdReader::Begun UdReader::begin_read(SendEntry& entry, Time now) {
  if (under_way_ == options_.max_outstanding) {  // guard(read-progress): condition => false
    begin_refused_ = true;
    return Begun::full;
  }
  Read* const idle = idle_read();
  if (idle == nullptr) return Begun::no_memory;
  Read& read = *idle;
  sends_.hand_over();
  active_.push_back(read);
  ++under_way_;
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
  next_expiry_ = std::min(next_expiry_, due(read));
  return Begun::begun;
}

/// Null where there is no memory.
UdReader::Read* UdReader::idle_read() noexcept {
  try {
    if (by_sink_.empty()) {
      const uint64_t parts = uint64_t{options_.max_outstanding} * options_.window;
      by_sink_.resize(std::bit_ceil(std::min<uint64_t>(parts * 2, kMaxChains)));
    }
    return &reads_.acquire_or_make(options_.window, max_ranges_);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void UdReader::leave(Read& read) {
  while (Part* part = read.parts.front()) revoke(*part);
  read.valid.clear();
  active_.remove(read);
  reads_.release(&read);
  --under_way_;
}

void UdReader::finish(Read& read, WcStatus status, uint32_t vendor_error) {
  SendEntry& entry = *read.entry;
  entry.operands = make_validity_map(entry.length, read.valid);
  if (status == WcStatus::timeout) counters_.add(Counter::read_timeouts);
  hand_on_sign(read);  // guard(read-progress)
  leave(read);
  sends_.answered(entry, status, vendor_error);
  if (!begin_refused_) return;  // guard(read-progress): => return;
  begin_refused_ = false;
  wake_();
}

void UdReader::reset() {
  while (Read* read = active_.front()) leave(*read);
  begin_refused_ = false;
  next_expiry_ = Time::max();
}

// --- Parts: what is asked for at a time.

/// A part's STag opens nothing any more, and never will again.
void UdReader::revoke(Part& part) {
  Part** link = &chain_of(part.sink);
  while (*link != &part) link = &(*link)->next_in_chain;
  *link = part.next_in_chain;
  if (!part.behind) --part.read->open_parts;  // guard(read-progress): without if (!part.behind)
  unsent_.remove(part);
  part.read->parts.remove(part);
  part.read->spare.push_back(part);
}

UdReader::Part& UdReader::spare_part(Read& read) {
  if (read.spare.empty()) {
    // There is one: the window has no more than half of the parts.
    Part* behind = read.parts.front();
    while (!behind->behind) behind = read.parts.next(*behind);
    revoke(*behind);
  }
  return *read.spare.pop_front();
}

void UdReader::add_part(Read& read, uint64_t begin, uint64_t length) {
  Part& part = spare_part(read);
  part.sink = sink_stags_.next();
  part.sink_offset = next_sink_offset();  // guard(reads): next_sink_offset() => 0
  part.nonce = static_cast<uint32_t>(identity_.next_nonce());  // guard(reads): => part.nonce = 0;
  part.msn = next_msn_++;
  part.begin = begin;
  part.length = static_cast<uint32_t>(length);
  part.missing = part.length;
  part.behind = false;
  part.asked = false;
  part.answerable = false;
  part.challenges = 0;
  part.echo.reset();
  Part*& chain = chain_of(part.sink);
  part.next_in_chain = chain;
  chain = &part;
  read.parts.push_back(part);
  ++read.open_parts;
  unsent_.push_back(part);
  if (read.retrying) counters_.add(Counter::read_retries);  // guard(read-progress)
}

/// The chain that the part with this STag is in, if there is one.
UdReader::Part*& UdReader::chain_of(STag sink) { return by_sink_[sink & (by_sink_.size() - 1)]; }

UdReader::Part* UdReader::find(STag sink) {
  if (by_sink_.empty()) return nullptr;
  Part* part = chain_of(sink);
  // guard(reads): condition => false
  while (part != nullptr && part->sink != sink) part = part->next_in_chain;
  return part;
}

/// Asks for what is missing behind what was asked for, as far as the window goes.
void UdReader::ask(Read& read) {
  bool asked = false;
  // guard(read-progress): without read.open_parts < options_.window &&
  for (; read.open_parts < options_.window && has_more(read); asked = true) {
    const auto [begin, end] = read.valid.first_gap(read.scanned, read.entry->length);
    // guard(read-progress): => read.scanned = end;
    read.scanned = std::min<uint64_t>(end, begin + rdmap::kMaxReadRequest);
    add_part(read, begin, read.scanned - begin);
  }
  if (asked) wake_();
}

bool UdReader::has_more(const Read& read) const {
  const uint64_t length = read.entry->length;
  return read.valid.first_gap(read.scanned, length).first != length;
}

void UdReader::ask_from_the_start(Read& read, Time now) {
  read.scanned = 0;
  read.last_try = now;
  read.last_nudge = now;
  if (read.entry->length != 0) return ask(read);  // guard(read-progress): => return ask(read);
  add_part(read, 0, 0);
  wake_();
}

// --- Time.

/// A target answers requests in their order, so that it is at work for a Read while it answers an
/// earlier one.
Time UdReader::last_sign(Read& read) {
  // guard(read-progress): earlier->entry->destination == read.entry->destination => true
  // guard(read-progress): earlier->entry->destination == read.entry->destination => false
  for (Read* earlier = active_.front(); earlier != &read; earlier = active_.next(*earlier))
    if (earlier->entry->destination == read.entry->destination)
      read.last_sign = std::max(read.last_sign, earlier->last_sign);
  return read.last_sign;
}

/// Before `read` is over, which later ones may have waited for.
void UdReader::hand_on_sign(Read& read) {
  // guard(read-progress): later->entry->destination == read.entry->destination => true
  for (Read* later = active_.next(read); later != nullptr; later = active_.next(*later))
    if (later->entry->destination == read.entry->destination)
      later->last_sign = std::max(later->last_sign, read.last_sign);
}

Time UdReader::silent_at(Read& read) {
  return std::max(last_sign(read), read.last_try) + read.timeout;
}

Time UdReader::due(Read& read) {
  const Time ends = std::min(silent_at(read), read.deadline);
  return has_more(read) ? std::min(ends, nudge_due(read)) : ends;
}

/// After last_sign().
Time UdReader::nudge_due(const Read& read) const {
  return std::max(read.last_sign, read.last_nudge) + read.timeout / kNudgesPerTimeout;
}

void UdReader::expire(Time now) {
  if (now < next_expiry_) return;
  Time next = Time::max();
  Read* read = active_.front();
  while (read != nullptr) {
    Read* const following = active_.next(*read);
    if (!is_over(*read, now)) next = std::min(next, due(*read));
    read = following;
  }
  next_expiry_ = next;
}

/// Does what is due. True: the Read has ended.
bool UdReader::is_over(Read& read, Time now) {
  const bool silent = now >= silent_at(read);
  // guard(read-progress): condition => silent && read.retries_left == 0
  // guard(read-progress): condition => now >= read.deadline || silent
  if (now >= read.deadline || (silent && read.retries_left == 0)) {
    finish(read, WcStatus::timeout);
    return true;
  }
  // guard(read-progress): now >= nudge_due(read) && has_more(read) => false
  if (silent)
    retry(read, now);
  else if (now >= nudge_due(read) && has_more(read))
    nudge(read, now);
  return false;
}

void UdReader::retry(Read& read, Time now) {
  --read.retries_left;  // guard(read-progress)
  read.retrying = true;
  while (Part* part = read.parts.front()) revoke(*part);  // guard(read-progress)
  ask_from_the_start(read, now);
}

void UdReader::nudge(Read& read, Time now) {
  read.last_nudge = now;
  for (Part* part = read.parts.front(); part != nullptr; part = read.parts.next(*part))
    if (part->asked) leave_behind(*part);
  ask(read);
}

void UdReader::leave_behind(Part& part) {
  if (part.behind) return;
  part.behind = true;
  --part.read->open_parts;
}

}  // namespace diwarp::rnic
