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
#include "fuzz/rc_startup.h"
#include "fuzz/request_ledger.h"
#include "llp/stream.h"
#include "rnic/rc/rc_queue_pair.h"
#include "verbs/handle_access.h"

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
  void post_receive(Input& in);
  /// All completions that are there.
  void poll();
  /// The end: posted requests complete, and memory is as it has to be.
  void finish(Input& in);

  STag stag(unsigned which) const;
  RcOutput& output() { return output_; }

 private:
  using Region = std::optional<MemoryRegion>;

  QueuePairInit init_from(Input& in);
  rnic::RcQueuePair& impl() { return static_cast<rnic::RcQueuePair&>(*impl_of(*qp_)); }
  template <class Call>
  void exclusively(Call&& call);

  void post_send(Input& in);
  SendWorkRequest request_from(Input& in, WrOpcode opcode);
  void post(SendWorkRequest request);
  void post_local(Input& in);
  MemoryBinding window_binding(unsigned how);
  MemoryBinding fast_binding(unsigned how);
  void deregister(Input& in);
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
  RequestLedger sends_{"the send queue"};
  RequestLedger receives_{"the receive queue"};
  uint64_t next_id_ = 1;
  uint64_t posted_receives_ = 0;
  bool signal_all_ = false;

  ManualClock clock_{Time(std::chrono::seconds(1000))};
  Device device_;
  ProtectionDomain pd_{device_};
  ProtectionDomain other_pd_{device_};
  CompletionQueue send_cq_;
  CompletionQueue recv_cq_;
  std::optional<SharedReceiveQueue> srq_;
  Region open_, read_only_, closed_, foreign_, bound_, inbox_, sink_, results_, outbox_;
  std::optional<MemoryWindow> window_;
  std::optional<FastRegistration> fast_;
  std::optional<QueuePair> qp_;
  STag inbox_key_ = 0, sink_key_ = 0, results_key_ = 0, outbox_key_ = 0;
};

}  // namespace diwarp::fuzz
