// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "base/clock.h"
#include "fuzz/verbs_messages.h"
#include "fuzz/verbs_objects.h"
#include "llp/memory/memory_network.h"

namespace diwarp::fuzz {

/// Devices on a network in memory, and an application that calls the verbs as the input says.
class VerbsScene {
 public:
  explicit VerbsScene(Input& in);
  ~VerbsScene();
  VerbsScene(const VerbsScene&) = delete;
  VerbsScene& operator=(const VerbsScene&) = delete;

  void act();
  /// All that is posted completes.
  void finish();

 private:
  static constexpr size_t kDevices = 3;
  static constexpr size_t kSlots = 4;  // of each kind of object
  static constexpr size_t kQueuePairs = 6;

  template <class Object, size_t Count>
  using Slots = std::array<std::shared_ptr<Object>, Count>;

  // verbs_scene.cpp: objects, states, time.
  void create();
  void create_cq();
  void create_region();
  void create_srq();
  void create_qp();
  void create_window();
  std::optional<QueuePairInit> init_of(VerbsQp& made);
  void destroy();
  void change_state(VerbsQp& which);
  void reset(VerbsQp& which);
  void join(VerbsQp& a, VerbsQp& b);
  void query(VerbsQp& which);
  void pass_time();
  void settle();
  bool has_cq(uint64_t serial) const;
  void check_flushed(const VerbsQp& which);
  static uint64_t key_of(const VerbsQp& which) {
    return key_of(which.domain->device, which.qp->number());
  }
  static uint64_t key_of(unsigned device, uint32_t number) {
    return uint64_t{device} << 32U | number;
  }
  template <class Object, size_t Count>
  Object* pick(Slots<Object, Count>& slots) {
    return slots[in_.below(Count)].get();
  }

  // verbs_requests.cpp: posting and completions.
  void post_receive(VerbsQp& to);
  void post_receive(VerbsSrq& to);
  std::optional<ReceiveWorkRequest> receive_into(VerbsDomain& domain, uint64_t wr_id);
  void note_receive(VerbsLedger& ledger, const std::shared_ptr<VerbsDomain>& domain,
                    const ReceiveWorkRequest& request);
  void post_send(VerbsQp& from);
  void post_message(VerbsQp& from, WrOpcode opcode);
  void post_write(VerbsQp& from, WrOpcode opcode);
  void post_read(VerbsQp& from, WrOpcode opcode);
  void post_atomic(VerbsQp& from, WrOpcode opcode);
  void post_local(VerbsQp& from);
  void post_batch(VerbsQp& from);
  bool post(VerbsQp& from, const SendWorkRequest& request, std::optional<VerbsSink> sink = {});
  void note_send(VerbsQp& from, const SendWorkRequest& request, std::optional<VerbsSink> sink);
  uint64_t next_id(uint64_t ledger) { return ledger << 32U | ++last_id_; }
  SendFlags flags();
  size_t length();
  VerbsQp* destination(VerbsQp& from, Address& address);
  RemoteMemory remote(size_t length, std::optional<std::vector<std::byte>>* expected);
  STag any_stag();
  size_t poll(VerbsCq& cq, size_t most);
  void poll_all();
  void take(unsigned device, const WorkCompletion& completion);
  void check_sink(unsigned device, const VerbsSink& sink, const WorkCompletion& completion);
  void listen_to_events();

  Input& in_;
  GuardedMemory registered_{1024, 21};  // by register_memory: a registration outlives regions
  ManualClock clock_{Time(std::chrono::seconds(1000))};
  std::shared_ptr<llp::MemoryNetwork> network_;
  std::deque<Device> devices_;
  std::deque<CompletionChannel> channels_;             // one of each device
  std::deque<EventQueue> events_;                      // the same
  std::vector<std::shared_ptr<VerbsLedger>> ledgers_;  // by number
  std::set<uint64_t> keys_;                            // of all queue pairs so far
  VerbsMessages messages_;
  uint64_t last_id_ = 0;
  uint64_t last_serial_ = 0;
  uint32_t armed_ = 0;  // notifications that were asked for and did not come

  Slots<VerbsDomain, kSlots> domains_;
  Slots<VerbsCq, kSlots> cqs_;
  Slots<VerbsRegion, kSlots> regions_;
  Slots<MemoryWindow, kSlots> windows_;
  Slots<FastRegistration, kSlots> fast_;
  Slots<VerbsSrq, kSlots> srqs_;
  Slots<VerbsQp, kQueuePairs> qps_;
};

}  // namespace diwarp::fuzz
