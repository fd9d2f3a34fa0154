// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>

#include "base/cache_line.h"
#include "base/spin_flag.h"
#include "ddp/placement.h"
#include "ddp/protection_context.h"
#include "diwarp/queue_options.h"
#include "diwarp/reliable_options.h"
#include "diwarp/types.h"
#include "rdmap/opcodes.h"
#include "rnic/queues/peer_order.h"
#include "rnic/queues/receive_shares.h"
#include "rnic/queues/send_entry.h"
#include "rnic/queues/send_entry_memory.h"

namespace diwarp::rnic {

class CompletionQueue;
class LoggedCounters;

inline constexpr uint32_t kMaxQueueDepth = 1U << 16;
inline constexpr uint32_t kMaxSge = 64;
inline constexpr uint32_t kMaxInlineData = 1024;

/// How many requests a queue has that were posted while it goes out of service. They stand in the
/// places from posted_ on, which publish() moves past them. Under the post lock; outstanding() may
/// be read without.
class WithheldRequests {
 public:
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  void add() { count_.store(count() + 1, std::memory_order_relaxed); }
  void clear() { count_.store(0, std::memory_order_relaxed); }
  void publish(std::atomic<uint64_t>& posted) {
    const uint64_t more = count();
    clear();
    posted.fetch_add(more, std::memory_order_release);
  }

 private:
  std::atomic<uint64_t> count_{0};
};

/// The send queue: a ring whose entries are posted by any thread, sent in order by the engine, and
/// free again once their completion lies in the completion queue (so a full completion queue holds
/// up the sender and loses nothing).
///
/// Indices count up for ever: reported_ <= done_ <= sent_ <= posted_. Between done_ and sent_ are
/// requests that await a response or were handed over, and those sent after them. posted_ is
/// written under the post lock, the others with the baton; posted_ and reported_ are published with
/// release and read with acquire.
///
/// Where each peer has an order of its own, entries are reported, and so become free, in another
/// order than that of posting. Then slots_ names the entries, as ReceiveQueue has it: places
/// [sent_, posted_) those that are not sent, in order, and [posted_, reported_ + depth) the free
/// ones; by_peer_ has those between; done_ and reported_ are numbers of requests, and no places.
///
/// The entries' memory is taken with the first request, so that a queue pair that never sent has
/// none; where it cannot be had, that request is refused.
class SendQueue {
 public:
  SendQueue(const QueuePairCapacity& capacity, bool signal_all,
            CompletionOrder order = CompletionOrder::posting);

  /// Its queue pair's, which outlives this.
  void set_log(const LoggedCounters& log) { log_ = &log; }

  /// Any thread, under lock(). Errors as QueuePair::post_send has them.
  std::error_code post(const SendWorkRequest& request);
  /// The same where the queue is going out of service: the request is never pending, and the next
  /// flush() is its end. Until then post() may not be called.
  std::error_code post_withheld(const SendWorkRequest& request);
  /// All of them, withheld or not, or none.
  std::error_code post_all(std::span<const SendWorkRequest> requests, bool withheld);
  SpinFlag& lock() { return lock_; }

  // With the baton.

  /// The entry `ahead` places after the oldest that is not sent; null where none is posted.
  SendEntry* pending(uint64_t ahead = 0) {
    const uint64_t index = sent_ + ahead;
    return index < posted_.load(std::memory_order_acquire) ? &entry(index) : nullptr;
  }
  /// The oldest pending entry is sent, and done unless it awaits a response.
  void sent();
  /// The oldest pending entry is under way; answered() tells when it is done.
  SendEntry& hand_over();
  /// An entry's place in the ring, by which it can be named, and the entry there.
  uint32_t place_of(const SendEntry& entry) const { return entries_.slot_of(entry); }
  SendEntry& at(uint32_t place) { return entries_[place]; }
  /// The oldest pending entry is done.
  void complete(WcStatus status, uint32_t vendor_error = 0);
  /// Nothing is under way.
  bool all_done() const { return done_ == sent_; }
  /// The oldest entry that awaits a response; null where none does. Not where each peer has an
  /// order of its own.
  SendEntry* awaiting();
  /// It has got it.
  void answered(WcStatus status) { answered(*awaiting(), status); }
  /// The same of any entry that is under way. Completions keep their order.
  void answered(SendEntry& entry, WcStatus status, uint32_t vendor_error = 0) {
    finish(entry, status, vendor_error);
  }
  /// All that is not done is flushed, what was withheld last. Not under lock().
  void flush();
  /// Moves completions of done entries to `cq`. False if it is full and some have to wait.
  bool report(CompletionQueue& cq, uint32_t qp_number) {
    return reported_.load(std::memory_order_relaxed) == done_ || report_done(cq, qp_number);
  }
  /// Forgets everything. Under lock().
  void clear();

  size_t outstanding() const {
    const uint64_t reported = reported_.load(std::memory_order_acquire);  // first: it is the lower
    return posted_.load(std::memory_order_acquire) + withheld_.count() - reported;
  }

 private:
  SendEntry& entry(uint64_t index) { return entries_[slot_at(index)]; }
  uint32_t slot_at(uint64_t index) const {
    const auto place = static_cast<uint32_t>(index & mask_);
    return slots_ ? slots_[place] : place;
  }
  bool take_memory() noexcept;
  std::error_code write(const SendWorkRequest& request, uint64_t index);
  /// Whether it has a completion.
  bool is_wanted(const SendEntry& entry) const {
    return signal_all_ || has(entry.flags, SendFlags::signaled) ||
           entry.status != WcStatus::success;
  }
  bool report_done(CompletionQueue& cq, uint32_t qp_number);
  void finish_of_peer(const SendEntry& finished);
  bool report_by_peer(CompletionQueue& cq, uint32_t qp_number);
  void release(uint32_t slot);
  void finish(SendEntry& entry, WcStatus status, uint32_t vendor_error);

  const uint32_t max_sge_;
  const uint32_t max_inline_;
  const bool signal_all_;
  const uint64_t mask_;
  std::unique_ptr<PeerOrder> by_peer_;  // where each peer has an order of its own
  std::unique_ptr<uint32_t[]> slots_;   // the same
  SendEntryMemory entries_;             // taken by the first post
  SpinFlag lock_;
  WithheldRequests withheld_;
  std::atomic<uint64_t> posted_{0};
  uint64_t sent_ = 0;
  uint64_t done_ = 0;
  uint64_t awaiting_ = 0;  // none awaits a response before it
  const LoggedCounters* log_ = nullptr;
  std::atomic<uint64_t> reported_{0};
};

/// Whether the memory of a request may be used for what it is for. Inline data are the queue's own.
inline bool may_send(const ddp::ProtectionContext& protection, const SendEntry& entry) {
  return has(entry.flags, SendFlags::inline_data) || protection.may_read(entry.sges);
}

/// Of the message that the request sends.
inline rdmap::Opcode opcode_of(const SendEntry& entry) {
  return rdmap::opcode_of(entry.opcode, has(entry.flags, SendFlags::solicited));
}

/// A posted receive. Its list of SGEs lies behind it; once it is done, the contents of its
/// completion lie there instead.
struct ReceiveEntry {
  uint64_t wr_id = 0;
  ReceiveEntry* next = nullptr;  ///< once done: in its queue pair's list
  uint32_t capacity = 0;         ///< bytes
  uint16_t slot = 0;             ///< its queue's own
  uint16_t sge_count = 0;

  /// Until it is done.
  std::span<Sge> sges() { return {reinterpret_cast<Sge*>(this + 1), sge_count}; }
  std::span<const Sge> sges() const { return {reinterpret_cast<const Sge*>(this + 1), sge_count}; }
  ddp::UntaggedBuffer buffer() const { return {sges(), capacity}; }
};

/// The contents of a receive's completion, beyond its wr_id and its queue pair. Lies behind a done
/// receive.
struct ReceiveOutcome {
  Address source;
  uint64_t immediate = 0;
  uint32_t byte_count = 0;
  STag invalidated_stag = 0;
  WcStatus status = WcStatus::success;
  WcOpcode opcode = WcOpcode::recv;
  bool solicited = false;
  bool invalidated = false;
  bool has_immediate = false;
};
static_assert(std::is_trivially_copyable_v<ReceiveOutcome>);
static_assert(sizeof(ReceiveEntry) % alignof(ReceiveOutcome) == 0);
static_assert(sizeof(ReceiveEntry) % alignof(Sge) == 0);

/// The receive queue, of one queue pair or shared by several. Receives are taken in order, but over
/// datagrams one may come back, to the head, when its message never became whole.
///
/// A slot is free (the posters'), then posted (the engine's), then taken (a queue pair's), then
/// free. One ring names them all. Indices count up for ever, released_ <= taken_ <= posted_: places
/// [taken_, posted_) name the posted slots, in order, and [posted_, released_ + depth) the free
/// ones; the names in the places between released_ and taken_ do not matter. posted_ is written
/// under the post lock, the others with the baton; posted_ and released_ are published with release
/// and read with acquire.
class ReceiveQueue {
 public:
  ReceiveQueue(uint32_t max_wr, uint32_t max_sge, bool shared);

  /// Any thread, under lock(). In order, up to the first that fails; `posted` says how many.
  std::error_code post(std::span<const ReceiveWorkRequest> requests, size_t& posted);
  /// The same where the queue is going out of service: publish_withheld() makes them available.
  /// Until then post() may not be called.
  std::error_code post_withheld(std::span<const ReceiveWorkRequest> requests, size_t& posted);
  SpinFlag& lock() { return lock_; }

  // With the baton.

  /// The next receive, which is then the caller's; null where none is posted.
  ReceiveEntry* take_receive() {
    ReceiveEntry* const next = peek();
    if (next != nullptr) ++taken_;
    return next;
  }
  /// The next receive, which stays where it is.
  ReceiveEntry* peek() {
    // guard(rows:receives-in-order): taken_ => (available() > 1 ? taken_ ^ 1 : taken_)
    return available() == 0 ? nullptr : &entry(ring_[taken_ & mask_]);
  }
  /// That receive is the caller's from now on.
  void take(ReceiveEntry& peeked) {
    assert(ring_[taken_ & mask_] == peeked.slot);
    static_cast<void>(peeked);
    ++taken_;
  }
  /// Undoes take_receive(): the entry is the next one again.
  void give_back(ReceiveEntry& entry) { ring_[--taken_ & mask_] = entry.slot; }
  /// A taken entry's slot may be posted anew.
  void release(ReceiveEntry& entry);
  /// Not under lock().
  void publish_withheld();
  /// Forgets what is not taken. Under lock().
  void clear();

  size_t available() const { return posted_.load(std::memory_order_acquire) - taken_; }
  /// Of all queue pairs that take from this queue.
  ReceiveShares& shares() { return shares_; }
  size_t outstanding() const {
    const uint64_t released = released_.load(std::memory_order_acquire);  // first: it is the lower
    return posted_.load(std::memory_order_acquire) + withheld_.count() - released;
  }

 private:
  std::error_code add(const ReceiveWorkRequest& request);
  std::error_code write(const ReceiveWorkRequest& request, uint64_t index);
  ReceiveEntry& entry(uint16_t slot) {
    return *std::launder(
        reinterpret_cast<ReceiveEntry*>(entries_.get() + size_t{slot} * entry_bytes_));
  }

  const uint32_t max_sge_;
  const uint32_t entry_bytes_;  // with its list of SGEs
  const uint64_t mask_;
  std::unique_ptr<std::byte[]> entries_;
  std::unique_ptr<uint16_t[]> ring_;  // slots
  // The posters'.
  SpinFlag lock_;
  WithheldRequests withheld_;
  std::atomic<uint64_t> posted_{0};
  // The engine's, apart by a cache line's length.
  [[maybe_unused]] std::byte apart_[kCacheLine - sizeof(uint64_t)];
  uint64_t taken_ = 0;
  std::atomic<uint64_t> released_{0};
  ReceiveShares shares_;
};

/// The done receives of one queue pair, in order, whose completions wait to be reported. With the
/// baton.
class DoneReceives {
 public:
  void add(ReceiveEntry& entry, const ReceiveOutcome& outcome) {
    new (&entry + 1) ReceiveOutcome(outcome);
    entry.next = nullptr;
    (last_ == nullptr ? first_ : last_->next) = &entry;
    last_ = &entry;
    ++added_;
  }
  /// How many were added, and of these reported or dropped, ever.
  uint64_t added() const { return added_; }
  uint64_t reported() const { return reported_; }
  /// Moves completions of the first `up_to` that were ever added to `cq` and frees their slots in
  /// `queue`. False if some of these have to wait.
  bool report(CompletionQueue& cq, ReceiveQueue& queue, uint64_t up_to, uint32_t qp_number) {
    return first_ == nullptr || report_up_to(cq, queue, up_to, qp_number);
  }
  /// Frees the slots, without a completion.
  void clear(ReceiveQueue& queue);

 private:
  bool report_up_to(CompletionQueue& cq, ReceiveQueue& queue, uint64_t up_to, uint32_t qp_number);
  ReceiveEntry& pop_front();

  ReceiveEntry* first_ = nullptr;
  ReceiveEntry* last_ = nullptr;
  uint64_t added_ = 0;
  uint64_t reported_ = 0;
};

}  // namespace diwarp::rnic
