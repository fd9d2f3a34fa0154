// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <diwarp/verbs.h>

#include "fuzz/datagram_memory.h"
#include "fuzz/datagram_messages.h"

namespace diwarp::fuzz {

/// A UD or RD queue pair, its application and their memory. Each request has to complete, once;
/// each receive is used once.
class DatagramEnd {
 public:
  /// `seed`: ends with different ones send different bytes.
  DatagramEnd(const Device& device, const QueuePairInit& options, uint8_t seed);

  QueuePair& queue_pair() { return *qp_; }
  DatagramMemory& memory() { return memory_; }
  const DatagramMemory& memory() const { return memory_; }
  Address address() const { return qp_->address(); }

  // --- What the application does. Nothing where the queue or the memory is in use.

  void post_receive(size_t length);
  void post_send(const Address& to, uint32_t q_key, size_t length, STag invalidate = 0);
  void post_record(const Address& to, RemoteMemory remote, size_t length);
  void post_read(const Address& to, RemoteMemory remote, size_t length, const ReadLimits& limits);
  void post_invalidate(STag stag);
  /// The queue pair goes to the error state.
  void stop();
  /// It begins anew, with nothing posted.
  void restart(DatagramEnd& peer);

  // --- What comes of it.

  /// Sees all receives; those from `peer` must have what it sent.
  void take_receives(DatagramEnd& peer);
  void take_completions();
  /// No request may be posted any more. A request that succeeded on RD was delivered to `peer`.
  void check_over(const DatagramEnd& peer) const;
  bool idle() const { return requests_.empty(); }

 private:
  static constexpr size_t kSlotBytes = DatagramRegion::kSlotBytes;

  struct Request {
    DatagramRegion* region;  // that it uses a slot of; null: none
    size_t slot;
  };

  SendWorkRequest request(const Address& to, WrOpcode opcode);
  void post(SendWorkRequest request, DatagramRegion& from, size_t length);
  void keep(const SendWorkRequest& request, const Request& kept);
  void take_receive(const WorkCompletion& wc, DatagramEnd& peer);
  void check_record(const WorkCompletion& wc) const;

  const QueuePairInit options_;
  ProtectionDomain pd_, other_pd_;
  CompletionQueue send_cq_, recv_cq_;
  DatagramMemory memory_;
  DatagramMessages messages_;
  std::optional<QueuePair> qp_;
  std::map<uint64_t, Request> requests_;
  bool restarted_ = false;
  uint32_t next_id_ = 1;
};

}  // namespace diwarp::fuzz
