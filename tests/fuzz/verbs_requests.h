// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/guarded_memory.h"
#include "fuzz/verbs_run.h"

namespace diwarp::fuzz {

/// What is posted in a run.
class VerbsRequests {
 public:
  /// `registered` is what requests register.
  VerbsRequests(VerbsRun& run, GuardedMemory& registered) : run_(run), registered_(registered) {}

  void post_receive(VerbsQp& to);
  void post_receive(VerbsSrq& to);
  void post_send(VerbsQp& from);
  /// Up to three Sends at once.
  void post_batch(VerbsQp& from);

 private:
  std::optional<ReceiveWorkRequest> receive_into(VerbsDomain& domain, uint64_t wr_id);
  void note_receive(VerbsLedger& ledger, const std::shared_ptr<VerbsDomain>& domain,
                    const ReceiveWorkRequest& request);
  void post_message(VerbsQp& from, WrOpcode opcode);
  void post_write(VerbsQp& from, WrOpcode opcode);
  void post_read(VerbsQp& from, WrOpcode opcode);
  void post_atomic(VerbsQp& from, WrOpcode opcode);
  void post_local(VerbsQp& from);
  bool post(VerbsQp& from, const SendWorkRequest& request, std::optional<VerbsSink> sink = {});
  void note_send(VerbsQp& from, const SendWorkRequest& request, std::optional<VerbsSink> sink);
  SendFlags flags();
  size_t length();
  VerbsQp* destination(VerbsQp& from, Address& address);
  RemoteMemory remote(size_t length, std::optional<std::vector<std::byte>>* expected);
  STag any_stag();

  VerbsRun& run_;
  GuardedMemory& registered_;
};

}  // namespace diwarp::fuzz
