// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include <diwarp/verbs.h>

#include "end_memory.h"
#include "ledger.h"
#include "scenario.h"

namespace diwarp::explore {

/// One end of an exploration: an RD queue pair, and an application that does what a scenario says
/// and tells the ledger what comes of it. After a completion the application uses the memory for
/// something else, and looks at the end whether the RNIC has written there since.
class End {
 public:
  /// Receives that it posts for a scenario.
  static constexpr size_t kReceives = 3;

  End(Device& device, const Scenario& scenario, Ledger& ledger, size_t side);

  QueuePair& queue_pair() { return *qp_; }

  void post(size_t operation, const End& peer);
  void post_receives(size_t count);
  /// The region that the peer's operation names here goes away.
  void deregister_target(size_t operation);
  /// The same by a local invalidate.
  void invalidate_target(size_t operation);
  /// The region of an own operation's buffer goes away.
  void deregister_buffer(size_t operation);
  /// The queue pair begins anew, with nothing posted, as the same object or as another.
  void reset();
  void make_anew();

  /// Tells the ledger of all completions; steps the device once at least. False where the queue
  /// pair is in the error state.
  bool drain();
  /// Steps the device once at most, and tells the ledger of a few completions.
  void step();
  /// The queue pair is in the error state.
  bool has_failed() { return qp_->state() == QpState::error; }
  /// Everything is over: nothing is posted or held but receives, and nothing was written after it
  /// was reported.
  void check_at_rest();

  // --- Probes: more requests, to see what the queue pairs still can do.

  void probe_send(const End& peer);
  void probe_read(const End& peer);
  /// Whether a probe since the last call failed since the peer had begun anew.
  bool take_restarted() { return std::exchange(restarted_, false); }
  /// Own requests outside the scenario that are not over.
  size_t pending() const { return pending_; }
  size_t receives_left() const { return receives_.size(); }

 private:
  void make_queue_pair(uint16_t port);
  void post_request(SendWorkRequest request, const Sge& sge);
  void complete(const WorkCompletion& wc);
  void complete_request(const WorkCompletion& wc);
  void take_receive(const WorkCompletion& wc);
  void check_order(const WorkCompletion& wc);
  void take_record(const WorkCompletion& wc);
  void violation(const std::string& message);

  const Scenario& scenario_;
  Ledger& ledger_;
  const size_t side_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  EndMemory memory_;
  std::optional<QueuePair> qp_;
  size_t posted_receives_ = 0;   // counted from the first on: also their wr_ids
  std::deque<size_t> receives_;  // that are not used, in the order of posting
  size_t pending_ = 0;
  bool restarted_ = false;
};

}  // namespace diwarp::explore
