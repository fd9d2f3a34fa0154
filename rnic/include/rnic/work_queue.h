// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
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

/// A posted send, in the ring of its queue.
struct SendEntry {
  uint64_t wr_id = 0;
  Address destination;
  uint32_t q_key = 0;
  SendFlags flags = SendFlags::none;
  WcStatus status = WcStatus::success;  // once done
  uint32_t vendor_error = 0;
  uint64_t length = 0;
  std::span<Sge> sges;  // in the queue's own storage
};

/// The send queue: a ring whose entries are posted by any thread, sent in order by the engine, and
/// free again once their completion lies in the completion queue (so a full completion queue holds
/// up the sender and loses nothing).
///
/// Indices count up for ever: reported_ <= sent_ <= posted_. posted_ is written under the post
/// lock, the other two with the baton; each is published with release and read with acquire.
class SendQueue {
 public:
  SendQueue(const QueuePairCapacity& capacity, bool signal_all);

  /// Any thread, under lock(). Errors as QueuePair::post_send has them.
  std::error_code post(const SendWorkRequest& request);
  SpinFlag& lock() { return lock_; }

  // With the baton.

  /// The entry `ahead` places behind the oldest that is not done; null where none is posted.
  SendEntry* pending(uint64_t ahead = 0);
  size_t pending_count() const { return posted_.load(std::memory_order_acquire) - done_; }
  /// The oldest pending entry is done.
  void complete(WcStatus status, uint32_t vendor_error = 0);
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
  uint64_t done_ = 0;
  std::atomic<uint64_t> reported_{0};
};

/// A posted receive.
struct ReceiveEntry {
  uint64_t wr_id = 0;
  uint64_t capacity = 0;  ///< bytes
  std::span<Sge> sges;
  WorkCompletion completion;  ///< once done
};

/// The receive queue. Receives are taken in order, but over datagrams one may come back, to the
/// head, when its message never became whole.
///
/// A slot wanders: free_ (to posters) -> posted_ (to the engine) -> taken -> done_ -> free_.
class ReceiveQueue {
 public:
  explicit ReceiveQueue(const QueuePairCapacity& capacity);

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
  /// A taken entry is done; its completion waits to be reported.
  void complete(ReceiveEntry& entry, const WorkCompletion& completion);
  /// Completes everything that is not taken with wr_flush_err.
  void flush(uint32_t qp_number);
  bool report(CompletionQueue& cq);
  void clear();

  size_t available() const { return returned_.size() + posted_.size(); }
  size_t outstanding() const { return outstanding_.load(std::memory_order_acquire); }

 private:
  void make_free(uint32_t slot);

  const uint32_t depth_;
  const uint32_t max_sge_;
  std::vector<ReceiveEntry> entries_;
  std::vector<Sge> sges_;
  SpinFlag lock_;
  SpscRing<uint32_t> free_;
  SpscRing<uint32_t> posted_;
  Ring<uint32_t> returned_;
  Ring<uint32_t> done_;
  std::atomic<size_t> outstanding_{0};
};

}  // namespace diwarp::rnic
