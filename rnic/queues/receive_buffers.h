// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>

#include "base/intrusive_list.h"
#include "diwarp/queue_options.h"
#include "diwarp/types.h"
#include "rnic/queues/shared_receive_queue.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

/// The receives of one queue pair, from a queue of its own or from a shared one: taken, given back,
/// completed, reported.
class ReceiveBuffers : public ListNode<SrqWaitTag> {
 public:
  /// `owner` is activated when it waits for a receive and there is one. `shared` may be null.
  ReceiveBuffers(TransmitSource& owner, const QueuePairCapacity& capacity,
                 std::shared_ptr<SharedReceiveQueue> shared);

  bool is_shared() const { return shared_ != nullptr; }

  // --- Any thread.

  ReceiveQueue& queue() { return queue_; }
  /// Whether await() was called since the last time: the thread that posts a receive asks, and
  /// tells the engine.
  bool take_wish() { return awaited_.exchange(false); }
  /// The thread that posts is to tell the engine, though nothing waits for a receive.
  void set_wish() { awaited_.store(true); }

  // --- With the baton.

  /// The next receive, which is then the caller's to complete or give back; null where there is
  /// none.
  ReceiveEntry* take_receive() {
    ReceiveEntry* const entry = queue_.take_receive();
    if (entry != nullptr && shared_) shared_->taken();
    return entry;
  }
  ReceiveEntry* peek() { return queue_.peek(); }
  /// The same as take_receive() of what peek() returned.
  void take(ReceiveEntry& peeked) {
    queue_.take(peeked);
    if (shared_) shared_->taken();
  }
  void give_back(ReceiveEntry& entry);
  void complete(ReceiveEntry& entry, const ReceiveOutcome& outcome) { done_.add(entry, outcome); }
  size_t available() const { return queue_.available(); }
  /// Tells posters that a receive is wanted, and looks for one once more: true where there is one.
  bool await();
  TransmitSource& owner() { return owner_; }

  /// Those that Sends of several segments hold, of all queue pairs that take from the queue.
  ReceiveShares& shares() { return queue_.shares(); }
  /// A Send that is over holds no receive any more: other queue pairs with the same shared receive
  /// queue may wait for that.
  void share_given_back();

  /// Receives that were completed, and of these reported, ever.
  uint64_t completed() const { return done_.added(); }
  uint64_t reported() const { return done_.reported(); }
  /// Moves completions of the first `up_to` that were ever completed to `cq`. False if some of
  /// these have to wait for room.
  bool report(CompletionQueue& cq, uint64_t up_to, uint32_t qp_number) {
    return done_.report(cq, queue_, up_to, qp_number);
  }

  /// Completes posted receives as flushed; shared ones stay for the others.
  void flush();
  /// Forgets what is done, and of an own queue what is posted. Under the queue's lock.
  void clear();
  /// The queue pair goes: it waits for nothing, and its done receives are not reported.
  void retire();

 private:
  TransmitSource& owner_;
  const std::shared_ptr<SharedReceiveQueue> shared_;
  const std::unique_ptr<ReceiveQueue> own_;  // where there is no shared one
  ReceiveQueue& queue_;
  DoneReceives done_;
  std::atomic<bool> awaited_{false};
};

}  // namespace diwarp::rnic
