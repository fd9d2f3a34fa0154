// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/group.h"
#include "common/operation.h"

namespace diwarp::tools {

/// The objects that one end of a measurement needs: equal slots of memory for what leaves, and for
/// what comes in (messages, what is read, what the peer writes), as many as may be posted at once.
struct EndpointShape {
  QpType transport = QpType::ud;
  /// The requests of this end.
  Operation operation = Operation::send;
  /// The rights of the peer here: write into the receive slots, or read or change the send slots.
  Access grants = Access::none;
  size_t send_size = 0;
  uint32_t send_slots = 1;
  size_t receive_size = 0;
  uint32_t receive_slots = 1;
  uint64_t max_rate = 0;
  SegmentChoice segment = {};
  /// RC: ask for CRCs.
  bool crc = true;
  /// This end is a member of it.
  std::optional<Group> group = {};
};

/// Whether a completion is of a message that came.
bool is_receive(const WorkCompletion& completion);
/// Whether all of the message came; of a Write-Record, a part may.
bool is_whole(const WorkCompletion& receive);

/// One end of a measurement: a queue pair, its completion queue and its memory. A work request's
/// wr_id is its slot. A message that fits is sent inline, so its slot is free again at once.
class Endpoint {
 public:
  Endpoint(Device& device, const EndpointShape& shape);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  QueuePair& queue_pair() { return qp_; }
  CompletionQueue& completion_queue() { return cq_; }
  /// One step of the device's engine.
  size_t progress() { return device_.progress(); }
  const EndpointShape& shape() const { return shape_; }

  /// Where sends go; for messages to the user, too.
  void set_peer(const Address& peer) { set_group(peer, {peer}); }
  /// The same where it is a group, and its members that answer.
  void set_group(const Address& group, std::vector<Address> members);
  const Address& peer() const { return peer_; }
  const std::vector<Address>& members() const { return members_; }

  /// Where the slots begin that the peer may use; nothing if it may use none.
  std::optional<RemoteMemory> granted_memory() const;
  /// Whether this end uses memory of the peer, and where the slots there begin.
  bool needs_peer_memory() const;
  void set_peer_memory(const RemoteMemory& memory) { peer_memory_ = memory; }

  std::span<std::byte> send_slot(uint32_t slot);
  std::span<std::byte> receive_slot(uint32_t slot);

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

  /// Throws unless the completion tells of success, or of a Read of which not all came: LinkDown if
  /// the connection broke.
  void check(const WorkCompletion& completion) const;
  /// The same of the connection, for an end that awaits no completion.
  void check_link() const;

 private:
  void post_receive(uint32_t slot);
  /// Whether what comes takes a posted receive.
  bool takes_receives() const { return !asks() && shape_.grants == Access::none; }
  std::span<std::byte> recorded(const WorkCompletion& record);
  std::span<std::byte> granted_slots();
  Sge sge_of(std::span<std::byte> slot) const;
  bool asks() const { return info_of(shape_.operation).manner == Manner::requests; }
  Sge local_sge(uint32_t slot);
  RemoteMemory remote_slot(uint32_t slot) const;
  void require(std::error_code code) const;
  [[noreturn]] void fail_link() const;

  Device& device_;
  EndpointShape shape_;
  size_t send_stride_;
  size_t receive_stride_;
  std::vector<std::byte> memory_;  // the send slots, then the receive slots
  ProtectionDomain pd_;
  MemoryRegion region_;
  std::optional<MemoryRegion> granted_;
  CompletionQueue cq_;
  QueuePair qp_;
  SendFlags send_flags_ = SendFlags::none;
  Address peer_;
  std::vector<Address> members_;
  RemoteMemory peer_memory_;
  std::vector<SendWorkRequest> prepared_;
  std::vector<Sge> prepared_sges_;  // one each; with room from the start, as they are pointed to
};

}  // namespace diwarp::tools
