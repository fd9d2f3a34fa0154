// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "fuzz/input.h"
#include "fuzz/rc_memory.h"
#include "fuzz/rc_output.h"
#include "fuzz/rc_regions.h"
#include "fuzz/rc_requests.h"
#include "fuzz/rc_startup.h"
#include "fuzz/request_ledger.h"
#include "llp/stream.h"
#include "support/software.h"

namespace diwarp::fuzz {

/// The side that is diwarp: a device with one RC queue pair, regions with all kinds of rights, and
/// the application's doings.
class RcTarget {
 public:
  /// The contents of a successful receive: checked against what the peer sent.
  using OnReceive = std::function<void(const WorkCompletion&, std::span<const std::byte>)>;
  /// Whether all that the peer sent is known.
  using Known = std::function<bool()>;

  RcTarget(Input& in, OnReceive on_receive, Known known);

  /// Gives the queue pair, in init, a connection.
  void connect(const RcStart& start, std::unique_ptr<llp::Stream> stream,
               std::vector<std::byte> leftover);
  /// Steps the device until nothing happens any more.
  void settle();
  /// The application does something. True if the queue pair is now to be connected anew.
  bool act(Input& in);
  void post_receive(Input& in) { requests_->post_receive(in, *qp_, srq_); }
  /// All completions that are there.
  void poll();
  /// The end: posted requests complete, and memory is as it has to be.
  void finish(Input& in);

  STag stag(unsigned which) const { return regions_.stag(which); }
  RcOutput& output() { return output_; }

 private:
  QueuePairInit init_from(Input& in);
  rnic::RcQueuePair& impl() { return test::software(*qp_); }
  template <class Call>
  void exclusively(Call&& call);

  bool change_state(Input& in);
  bool reset();
  void pass_time(Input& in);
  size_t poll_some(CompletionQueue& cq, size_t most);
  void take(const WorkCompletion& completion);
  void take_receive(const RequestLedger::Request& request, const WorkCompletion& completion);

  RcMemory memory_;
  RcOutput output_{memory_};
  OnReceive on_receive_;
  Known known_;
  ManualClock clock_{Time(std::chrono::seconds(1000))};
  Device device_;
  ProtectionDomain pd_{device_};
  ProtectionDomain other_pd_{device_};
  CompletionQueue send_cq_;
  CompletionQueue recv_cq_;
  std::optional<SharedReceiveQueue> srq_;
  RcRegions regions_;
  std::optional<QueuePair> qp_;
  std::optional<RcRequests> requests_;
};

}  // namespace diwarp::fuzz
