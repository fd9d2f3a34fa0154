// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "bridge/completion_channel.h"
#include "bridge/owned.h"
#include "bridge/rdma_core.h"
#include "bridge/waiting_completions.h"
#include "bridge/work_table.h"
#include "provider/arming.h"
#include "provider/completion_queue.h"

namespace diwarp::bridge {

class Device;

/// Tunable: the completions that the device's queue has room for, unless the application wants more
/// or the device has less: all that the queue pairs of a completion queue may have posted must fit.
inline constexpr uint32_t kCompletionRoom = 8192;

class CompletionQueue final : public provider::CompletionQueue {
 public:
  /// Entries, where the device has as many.
  static constexpr uint32_t kMostEntries = 1u << 20;

  /// Throws Error. `channel` may be null.
  CompletionQueue(std::shared_ptr<Device> device, uint32_t entries,
                  std::shared_ptr<CompletionChannel> channel, uint64_t context);
  ~CompletionQueue() override;

  size_t poll(std::span<WorkCompletion> completions) override;
  size_t poll(std::span<WorkCompletion> completions, Duration timeout) override;
  void arm(bool solicited_only) override;
  uint32_t entries() const override { return entries_; }

  // --- For the bridge.

  ibv_cq* get() const { return cq_.get(); }
  uint64_t context() const { return context_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  /// The device has told of a completion. False where nobody waits for one.
  bool tell() { return channel_ == nullptr || arming_.tell(); }

  /// Makes room for `places` completions. Throws Error(no_resources).
  void reserve(uint32_t places);
  void unreserve(uint32_t places);
  /// Completions of this table's requests may come here. The first attach() of a table makes room
  /// for `places` of them, and throws Error(no_resources) where there is none; up to `replaced` of
  /// a table that goes may wait besides. For each one detach(), after which completions of the
  /// table are nobody's: what waits for a poll stays, if `keeps`.
  void attach(WorkTable& table, uint32_t places, uint32_t replaced = 0);
  void detach(const WorkTable& table, bool keeps);
  /// Takes what the device has, so that places of unsignaled requests become free.
  void reap();
  /// Whatever of this table is not complete is flushed: the device will not tell.
  void flush(const WorkTable& table);
  /// Requests of this table that need nothing of the device are completed, if it is their turn.
  void finish_completed(WorkTable& table);

 private:
  struct Attached {
    WorkTable* table = nullptr;
    uint32_t uses = 0;
    uint32_t places = 0;
  };

  CompletionChannel& events() const { return channel_ ? *channel_ : *own_channel_; }
  size_t poll_once(std::span<WorkCompletion> completions);
  size_t fetch(CompletionSink& sink, size_t most);
  template <class Room>
  bool fetch_all(CompletionSink& sink, Room room);
  bool arm_again();
  int request_event();
  WorkTable* table_of(uint64_t wr_id);
  void deliver(const ibv_wc& wc, CompletionSink& sink);
  void make_room(uint32_t places, uint32_t replaced);
  void tell_waiting();
  void sleep(Duration limit);

  const std::shared_ptr<Device> device_;
  const uint32_t entries_;
  const std::shared_ptr<CompletionChannel> channel_;      // the application's; may be null
  const std::unique_ptr<CompletionChannel> own_channel_;  // where it has none
  const uint64_t context_;
  uint32_t room_ = 0;
  Owned<ibv_cq> cq_;
  provider::Arming arming_;
  std::atomic<bool> solicited_only_{false};
  std::atomic<unsigned> polls_{0};
  std::atomic<uint32_t> sleepers_{0};  // threads, on own_channel_

  std::mutex mutex_;  // guards what follows
  uint32_t reserved_ = 0;
  std::unordered_map<uint32_t, Attached> tables_;  // by their numbers
  std::array<WorkTable*, 4> recent_tables_{};      // of those, by the numbers' last bits
  // At most reserved_, and of tables that are gone entries_.
  WaitingCompletions waiting_;
};

}  // namespace diwarp::bridge
