// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <variant>
#include <vector>

#include "base/ring.h"
#include "base/spin_flag.h"
#include "base/spsc_ring.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"

namespace diwarp::rnic {

class CompletionQueue;

inline constexpr uint32_t kMaxQueueDepth = 1U << 16;
inline constexpr uint32_t kMaxSge = 64;
inline constexpr uint32_t kMaxInlineData = 1024;

/// A posted request of the send queue, in the ring of its queue.
struct SendEntry {
  uint64_t wr_id = 0;
  Address destination;
  uint32_t q_key = 0;
  WrOpcode opcode = WrOpcode::send;
  SendFlags flags = SendFlags::none;
  WcStatus status = WcStatus::success;  // once done
  bool done = false;
  uint32_t vendor_error = 0;
  STag invalidate_stag = 0;
  RemoteMemory remote;
  uint64_t length = 0;     // bytes that travel
  std::span<Sge> sges;     // in the queue's own storage
  std::variant<std::monostate, uint64_t, AtomicOperands, MemoryBinding, ReadLimits> operands;
  ValidityMap validity;          // once done: of a Read over datagrams
  SendEntry* next = nullptr;     // while handed over: its keeper's own list
  uint32_t msn = 0;              // the same: its keeper's own
  void* object = nullptr;        // the same

  /// Immediate data that travel with the message; null: none.
  const uint64_t* immediate() const {
    return has_flag(flags, SendFlags::immediate) ? std::get_if<uint64_t>(&operands) : nullptr;
  }
};

/// What is known of each opcode.
struct WrFacts {
  WrOpcode opcode;
  WcOpcode completion;
  bool responded;   ///< done when the peer's response has come (Reads and atomics)
  bool local;       ///< nothing is sent
  bool gathers;     ///< its SGEs are read, else they are written (or there are none)
  bool on_streams;
  bool on_datagrams;
};
const WrFacts& facts_of(WrOpcode opcode);

/// The send queue: a ring whose entries are posted by any thread, sent in order by the engine, and
/// free again once their completion lies in the completion queue (so a full completion queue holds
/// up the sender and loses nothing).
///
/// Indices count up for ever: reported_ <= done_ <= sent_ <= posted_. Between done_ and sent_ are
/// requests that await a response, and what was sent behind them. posted_ is written under the post
/// lock, the others with the baton; posted_ and reported_ are published with release and read with
/// acquire.
class SendQueue {
 public:
  SendQueue(const QueuePairCapacity& capacity, bool signal_all);

  /// Any thread, under lock(). Errors as QueuePair::post_send has them.
  std::error_code post(const SendWorkRequest& request);
  SpinFlag& lock() { return lock_; }

  // With the baton.

  /// The entry `ahead` places behind the oldest that is not sent; null where none is posted.
  SendEntry* pending(uint64_t ahead = 0);
  /// The oldest pending entry is sent, and done unless it awaits a response.
  void sent();
  /// The oldest pending entry is under way; answered() tells when it is done.
  SendEntry& hand_over() { return entry(sent_++); }
  /// The oldest pending entry is done.
  void complete(WcStatus status, uint32_t vendor_error = 0);
  /// The oldest entry that awaits a response; null where none does.
  SendEntry* awaiting() { return done_ == sent_ ? nullptr : &entry(done_); }
  /// It has got it.
  void answered(WcStatus status) { answered(entry(done_), status); }
  /// The same of any entry that is under way. Completions keep the order of posting.
  void answered(SendEntry& entry, WcStatus status, uint32_t vendor_error = 0) {
    finish(entry, status, vendor_error);
  }
  void flush();
  /// Moves completions of done entries to `cq`. False if it is full and some have to wait.
  bool report(CompletionQueue& cq, uint32_t qp_number);
  /// Forgets everything. Under lock().
  void clear();

  size_t outstanding() const {
    const uint64_t reported = reported_.load(std::memory_order_acquire);  // first: it is the lower
    return posted_.load(std::memory_order_acquire) - reported;
  }

 private:
  SendEntry& entry(uint64_t index) { return entries_[index & mask_]; }
  void finish(SendEntry& entry, WcStatus status, uint32_t vendor_error);
  void copy_inline(const SendWorkRequest& request, SendEntry& entry, uint64_t slot);

  const uint32_t depth_;
  const uint32_t max_sge_;
  const uint32_t max_inline_;
  const bool signal_all_;
  const uint64_t mask_;
  std::vector<SendEntry> entries_;
  std::vector<Sge> sges_;             // max_sge_ per entry
  std::vector<std::byte> inline_;     // max_inline_ per entry
  SpinFlag lock_;
  std::atomic<uint64_t> posted_{0};
  uint64_t sent_ = 0;
  uint64_t done_ = 0;
  std::atomic<uint64_t> reported_{0};
};

/// A posted receive.
struct ReceiveEntry {
  uint64_t wr_id = 0;
  uint64_t capacity = 0;  ///< bytes
  std::span<Sge> sges;
  WorkCompletion completion;     ///< once done
  ReceiveEntry* next = nullptr;  ///< once done: in its queue pair's list
};

/// The receive queue, of one queue pair or shared by several. Receives are taken in order, but over
/// datagrams one may come back, to the head, when its message never became whole.
///
/// A slot wanders: free_ (to posters) -> posted_ (to the engine) -> taken (a queue pair's) -> free_.
class ReceiveQueue {
 public:
  ReceiveQueue(uint32_t max_wr, uint32_t max_sge);

  /// Any thread, under lock().
  std::error_code post(const ReceiveWorkRequest& request);
  SpinFlag& lock() { return lock_; }

  // With the baton.

  /// The next receive, which is then the caller's; null where none is posted.
  ReceiveEntry* take();
  /// The next receive, which stays where it is.
  ReceiveEntry* peek();
  /// Undoes take(): the entry is the next one again.
  void give_back(ReceiveEntry& entry);
  /// A taken entry's slot may be posted anew.
  void release(ReceiveEntry& entry);
  /// Forgets what is not taken.
  void clear();

  size_t available() const { return returned_.size() + posted_.size(); }
  size_t outstanding() const { return outstanding_.load(std::memory_order_acquire); }

 private:
  const uint32_t depth_;
  const uint32_t max_sge_;
  std::vector<ReceiveEntry> entries_;
  std::vector<Sge> sges_;
  SpinFlag lock_;
  SpscRing<uint32_t> free_;
  SpscRing<uint32_t> posted_;
  Ring<uint32_t> returned_;
  std::atomic<size_t> outstanding_{0};
};

/// The done receives of one queue pair, in order, whose completions wait to be reported. With the
/// baton.
class DoneReceives {
 public:
  void add(ReceiveEntry& entry, WorkCompletion&& completion);
  /// How many were added, and of these reported or dropped, ever.
  uint64_t added() const { return added_; }
  uint64_t reported() const { return reported_; }
  /// Moves completions of the first `up_to` that were ever added to `cq` and frees their slots in
  /// `queue`. False if some of these have to wait.
  bool report(CompletionQueue& cq, ReceiveQueue& queue, uint64_t up_to);
  /// Frees the slots, without a completion.
  void clear(ReceiveQueue& queue);

 private:
  ReceiveEntry& pop_front();

  ReceiveEntry* first_ = nullptr;
  ReceiveEntry* last_ = nullptr;
  uint64_t added_ = 0;
  uint64_t reported_ = 0;
};

}  // namespace diwarp::rnic
