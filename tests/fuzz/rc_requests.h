// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstdint>
#include <optional>

#include "fuzz/input.h"
#include "fuzz/rc_memory.h"
#include "fuzz/rc_output.h"
#include "fuzz/rc_regions.h"
#include "fuzz/request_ledger.h"

namespace diwarp::fuzz {

/// The requests of one RC queue pair: posted as the input says, and each completed once.
class RcRequests {
 public:
  RcRequests(RcMemory& memory, RcRegions& regions, RcOutput& output, bool signal_all)
      : memory_(memory), regions_(regions), output_(output), signal_all_(signal_all) {}

  /// To the shared receive queue, if there is one.
  void post_receive(Input& in, QueuePair& qp, std::optional<SharedReceiveQueue>& srq);
  void post_send(Input& in, QueuePair& qp);
  void post_local(Input& in, QueuePair& qp);

  RequestLedger::Request receive_completed(const WorkCompletion& completion) {
    return receives_.completed(completion);
  }
  RequestLedger::Request send_completed(const WorkCompletion& completion) {
    return sends_.completed(completion);
  }
  /// The queue pair was reset. Shared receives stay.
  void dropped(bool shared);
  void check_all_completed(bool shared) const;

 private:
  SendWorkRequest request_from(Input& in, WrOpcode opcode);
  void post(SendWorkRequest request, QueuePair& qp);

  RcMemory& memory_;
  RcRegions& regions_;
  RcOutput& output_;
  const bool signal_all_;
  RequestLedger sends_{"the send queue"};
  RequestLedger receives_{"the receive queue"};
  uint64_t next_id_ = 1;
  uint64_t posted_receives_ = 0;
};

}  // namespace diwarp::fuzz
