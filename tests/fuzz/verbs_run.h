// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "base/clock.h"
#include "fuzz/verbs_messages.h"
#include "fuzz/verbs_objects.h"
#include "llp/memory/memory_network.h"

namespace diwarp::fuzz {

/// Devices on a network in memory, and their time.
struct VerbsHosts {
  static constexpr size_t kDevices = 3;

  explicit VerbsHosts(Input& in);

  /// Steps the devices until nothing happens any more.
  void settle();
  void pass_time(Input& in);

  ManualClock clock{Time(std::chrono::seconds(1000))};
  std::shared_ptr<llp::MemoryNetwork> network;
  std::deque<Device> devices;
  std::deque<CompletionChannel> channels;  ///< one of each device
  std::deque<EventQueue> events;           ///< the same
};

/// What was posted so far, and to which queue pairs.
struct VerbsPosted {
  uint64_t next_id(uint64_t ledger) { return ledger << 32U | ++last_id; }

  std::vector<std::shared_ptr<VerbsLedger>> ledgers;  ///< by number
  std::set<uint64_t> queue_pairs;                     ///< keys of all so far
  VerbsMessages messages;
  uint64_t last_id = 0;
};

/// The objects of a run, in a few places of each kind.
struct VerbsSlots {
  static constexpr size_t kSlots = 4;
  static constexpr size_t kQueuePairs = 6;

  template <class Object, size_t Count = kSlots>
  using Slots = std::array<std::shared_ptr<Object>, Count>;

  bool has_cq(uint64_t serial) const;

  uint64_t last_serial = 0;
  Slots<VerbsDomain> domains;
  Slots<VerbsCq> cqs;
  Slots<VerbsRegion> regions;
  Slots<MemoryWindow> windows;
  Slots<FastRegistration> fast;
  Slots<VerbsSrq> srqs;
  Slots<VerbsQp, kQueuePairs> qps;
};

/// What the parts of a run share.
struct VerbsRun {
  explicit VerbsRun(Input& input) : in(input), hosts(input) {}

  /// An object, or null where its place is empty.
  template <class Object, size_t Count>
  Object* pick(std::array<std::shared_ptr<Object>, Count>& places) {
    return places[in.below(Count)].get();
  }

  Input& in;
  VerbsHosts hosts;
  VerbsPosted posted;
  VerbsSlots slots;
};

/// The key of a queue pair: no other of the same time has it.
inline uint64_t key_of(unsigned device, uint32_t number) {
  return uint64_t{device} << 32U | number;
}
inline uint64_t key_of(const VerbsQp& which) {
  return key_of(which.domain->device, which.qp->number());
}

}  // namespace diwarp::fuzz
