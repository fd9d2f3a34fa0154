// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/endpoint_memory.h"
#include "common/endpoint_shape.h"

namespace diwarp::tools {

/// Whether a completion is of a message that came.
bool is_receive(const WorkCompletion& completion);
/// Whether all of the message came; of a Write-Record, a part may.
bool is_whole(const WorkCompletion& receive);

/// How long an open Write-Record waits for what is missing: well before either end of a measurement
/// gives up what is on the way (patience()).
inline constexpr Duration kRecordTimeout = std::chrono::milliseconds(50);

/// One end of a measurement: a queue pair, its completion queue and its memory. A work request's
/// wr_id is its slot. A message that fits is sent inline, so its slot is free again at once.
class Endpoint {
 public:
  Endpoint(Device& device, const EndpointShape& shape);
  /// With a completion queue that others have as well, which outlives it.
  Endpoint(Device& device, const EndpointShape& shape, CompletionQueue& cq);
  /// What its queue pair has in its error queue is noted.
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  QueuePair& queue_pair() { return qp_; }
  CompletionQueue& completion_queue() { return *cq_; }
  /// One step of the device's engine.
  size_t progress() { return device_.progress(); }
  const EndpointShape& shape() const { return shape_; }
  Address device_address() const { return device_.address(); }

  /// Where sends go; for messages to the user, too.
  void set_peer(const Address& peer) { set_group(peer, {peer}); }
  /// The same where it is a group, and its members that answer.
  void set_group(const Address& group, std::vector<Address> members);
  const Address& peer() const { return peer_; }
  const std::vector<Address>& members() const { return members_; }

  /// Where the slots begin that the peer may use; nothing if it may use none.
  std::optional<RemoteMemory> granted_memory() const { return memory_.granted(); }
  /// Where the slots begin that this end may use there.
  void set_peer_memory(const RemoteMemory& memory) { peer_memory_ = memory; }

  std::span<std::byte> send_slot(uint32_t slot) { return memory_.send_slot(slot); }
  std::span<std::byte> receive_slot(uint32_t slot) { return memory_.receive_slot(slot); }

  /// Posts every receive slot, if messages take posted receives here.
  void post_receives();
  /// Posts the receive that came back with `wr_id`, likewise, when its message is done with.
  void post_receive_again(uint64_t wr_id);
  /// Posts the operation with the whole slot, and the same one of the peer's where it is of memory.
  /// Failures complete always, successes if `signaled`. A Write-Record carries `number`.
  void post_send(uint32_t slot, bool signaled = true, uint64_t number = 0) {
    prepare_send(slot, signaled, number);
    post_prepared();
  }
  /// The same in two steps: prepared requests are posted together. At most shape().send_slots.
  void prepare_send(uint32_t slot, bool signaled = true, uint64_t number = 0);
  void post_prepared();

  /// Which of members() it came from. Anyone may send a datagram here; only theirs count.
  std::optional<size_t> member_of(const WorkCompletion& receive) const;
  bool is_from_peer(const WorkCompletion& receive) const { return member_of(receive).has_value(); }
  /// What came; of a Write-Record all of its memory, valid or not. Empty if it is no slot's.
  std::span<const std::byte> message(const WorkCompletion& receive);
  /// What came of a Write-Record whose segments complete by themselves.
  RecordedSegment recorded_segment(const WorkCompletion& segment) {
    return memory_.recorded_segment(segment);
  }

  /// Throws unless the completion tells of success, or of a Read of which not all came: LinkDown if
  /// the connection broke.
  void check(const WorkCompletion& completion) const;
  /// The same of the connection, for an end that awaits no completion.
  void check_link() const;

 private:
  Endpoint(Device& device, const EndpointShape& shape, CompletionQueue* cq);
  void post_receive(uint32_t slot);
  RemoteMemory remote_slot(uint32_t slot) const;

  Device& device_;
  EndpointShape shape_;
  ProtectionDomain pd_;
  EndpointMemory memory_;
  std::optional<CompletionQueue> own_cq_;
  CompletionQueue* cq_;
  QueuePair qp_;
  SendFlags send_flags_ = SendFlags::none;
  Address peer_;
  std::vector<Address> members_;
  RemoteMemory peer_memory_;
  std::vector<SendWorkRequest> prepared_;
  std::vector<Sge> prepared_sges_;  // one each; with room from the start, as they are pointed to
};

}  // namespace diwarp::tools
