// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace diwarp::tools {

/// What one end of a measurement needs: equal slots of memory to send from and to receive into, as
/// many as may be posted at once.
struct EndpointShape {
  QpType transport = QpType::ud;
  size_t send_size = 0;
  uint32_t send_slots = 1;
  size_t receive_size = 0;
  uint32_t receive_slots = 1;
  uint64_t max_rate = 0;
};

/// One end of a measurement: a queue pair, its completion queue and its memory. A work request's
/// wr_id is its slot. A message that fits is sent inline, so its slot is free again at once.
class Endpoint {
 public:
  Endpoint(const Device& device, const EndpointShape& shape);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  QueuePair& queue_pair() { return qp_; }
  CompletionQueue& completion_queue() { return cq_; }
  const EndpointShape& shape() const { return shape_; }

  /// Where sends go; for messages to the user, too.
  void set_peer(const Address& peer) { peer_ = peer; }
  const Address& peer() const { return peer_; }

  std::span<std::byte> send_slot(uint32_t slot);
  std::span<std::byte> receive_slot(uint32_t slot);

  /// Posts every receive slot.
  void post_receives();
  void post_receive(uint32_t slot);
  /// Posts the whole slot. Failures complete always, successes if `signaled`.
  void post_send(uint32_t slot, bool signaled = true);

  /// Anyone may send a datagram here; only the peer's count.
  bool is_from_peer(const WorkCompletion& receive) const;
  /// What came with a receive.
  std::span<const std::byte> message(const WorkCompletion& receive);

  /// Throws unless the completion tells of success: LinkDown if the connection broke.
  void check(const WorkCompletion& completion) const;

 private:
  Sge sge_of(std::span<std::byte> slot) const;
  void require(std::error_code code) const;
  [[noreturn]] void fail_link() const;

  EndpointShape shape_;
  size_t send_stride_;
  size_t receive_stride_;
  std::vector<std::byte> memory_;  // the send slots, then the receive slots
  ProtectionDomain pd_;
  MemoryRegion region_;
  CompletionQueue cq_;
  QueuePair qp_;
  SendFlags send_flags_ = SendFlags::none;
  Address peer_;
};

}  // namespace diwarp::tools
