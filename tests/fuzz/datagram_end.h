// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include <diwarp/verbs.h>

#include "fuzz/watched_memory.h"

namespace diwarp::fuzz {

/// A UD or RD queue pair, its application and their memory. Each request has to complete, once;
/// each receive is used once; memory may change only where and while something was posted or
/// registered for that.
class DatagramEnd {
 public:
  static constexpr uint64_t kBase = 0x7000;  // of the regions that peers may name
  static constexpr size_t kSlots = 8;
  static constexpr size_t kSlotBytes = 512;

  /// `seed`: ends with different ones send different bytes.
  DatagramEnd(const Device& device, const QueuePairInit& options, uint8_t seed);

  QueuePair& queue_pair() { return *qp_; }
  Address address() const { return qp_->address(); }

  // --- What the application does. Nothing where the queue or the memory is in use.

  void post_receive(size_t length);
  void post_send(const Address& to, uint32_t q_key, size_t length, STag invalidate = 0);
  void post_record(const Address& to, RemoteMemory remote, size_t length);
  void post_read(const Address& to, RemoteMemory remote, size_t length, const ReadLimits& limits);
  void post_invalidate(STag stag);
  /// Deregisters a region, or registers it again.
  void toggle_region(uint8_t which);
  /// Registers again what receives need.
  void restore_receives();
  /// The queue pair goes to the error state.
  void stop();
  /// It begins anew, with nothing posted.
  void restart(DatagramEnd& peer);

  // --- What peers may name.

  /// An STag of one of the regions, some of which allow nothing.
  STag stag(uint8_t which) const;

  // --- What comes of it.

  /// Sees all receives; those from `peer` must have what it sent.
  void take_receives(DatagramEnd& peer);
  void take_completions();
  void check_memory();
  /// No request may be posted any more. A request that succeeded on RD was delivered to `peer`.
  void check_over(const DatagramEnd& peer) const;
  bool idle() const { return requests_.empty(); }

 private:
  struct Registered {
    WatchedMemory memory;
    Access access;
    std::optional<uint64_t> base = std::nullopt;
    std::optional<MemoryRegion> region = std::nullopt;
    bool was_valid = true;
  };
  using Slots = std::array<bool, kSlots>;
  struct Request {
    Slots* slots;  // that it uses one of; null: none
    size_t slot;
  };

  struct Sent {
    size_t length;
    Address to;
  };

  static std::optional<size_t> free_slot(const Slots& slots);
  std::vector<std::byte> contents_of(uint32_t id, size_t length) const;
  void register_region(Registered& registered, const ProtectionDomain& pd);
  SendWorkRequest request(const Address& to, WrOpcode opcode);
  void post(SendWorkRequest request, Registered& from, Slots& slots, size_t length);
  void keep(const SendWorkRequest& request, const Request& kept);
  void take_receive(const WorkCompletion& wc, DatagramEnd& peer);
  void check_message(std::span<const std::byte> bytes, const DatagramEnd& peer);
  void check_record(const WorkCompletion& wc) const;
  void check_slots(Registered& registered, const Slots& slots, const char* message);
  void check_open();

  const uint8_t seed_;
  const QueuePairInit options_;
  ProtectionDomain pd_, other_pd_;
  CompletionQueue send_cq_, recv_cq_;
  Registered receives_, sends_, reads_;  // of which slots are used
  Registered open_, read_only_, closed_, foreign_;
  Slots receiving_{}, sending_{}, reading_{};
  std::optional<QueuePair> qp_;
  std::map<uint64_t, Request> requests_;
  std::map<uint32_t, Sent> sent_;
  std::set<uint32_t> succeeded_;
  std::set<uint32_t> delivered_;  // of the peer's
  bool restarted_ = false;
  uint32_t next_id_ = 1;
};

}  // namespace diwarp::fuzz
