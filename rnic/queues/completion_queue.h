// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/blocking_wait.h"
#include "base/counters.h"
#include "base/intrusive_list.h"
#include "base/spin_flag.h"
#include "base/spsc_ring.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "provider/completion_queue.h"
#include "rnic/engine/engine.h"
#include "rnic/queues/completion_arming.h"

namespace diwarp::rnic {

/// Entries of one completion queue.
inline constexpr uint32_t kMaxEntries = 1U << 20;

class DeviceContext;

class CompletionQueue;

/// Tells which completion queues have an event, and has a descriptor that is readable while there
/// are any. Nothing is allocated: the queues themselves are linked.
class CompletionChannel final : public provider::CompletionChannel {
 public:
  explicit CompletionChannel(std::shared_ptr<DeviceContext> device);

  std::optional<CompletionEvent> get_event(Duration timeout) override;
  int descriptor() const override { return blocking_wait_.descriptor(); }

  // For completion queues.
  void raise(CompletionQueue& cq);
  void forget(CompletionQueue& cq);

 private:
  std::optional<CompletionEvent> take_event();

  std::shared_ptr<DeviceContext> device_;
  std::mutex mutex_;
  IntrusiveList<CompletionQueue> raised_;
  BlockingWait blocking_wait_;  // one wake per event
};

/// The ring of completions. The engine's baton holder pushes, any thread polls.
class CompletionQueue final : public provider::CompletionQueue, public ListNode<> {
 public:
  CompletionQueue(std::shared_ptr<DeviceContext> device, uint32_t entries,
                  std::shared_ptr<CompletionChannel> channel, uint64_t context);
  ~CompletionQueue() override;
  CompletionQueue(const CompletionQueue&) = delete;
  CompletionQueue& operator=(const CompletionQueue&) = delete;

  size_t poll(std::span<WorkCompletion> completions) override;
  size_t poll(std::span<WorkCompletion> completions, Duration timeout) override;
  void arm(bool solicited_only) override;
  uint32_t entries() const override { return entries_; }

  // --- With the baton.

  /// The place of the next completion, which holds no validity map: all else of it is to be
  /// written. Null where there is no room: the completion stays where it is, and its queue pair
  /// tries again when this queue has been polled.
  WorkCompletion* next_place() {
    WorkCompletion* const place = ring_.free_place();
    return place != nullptr ? place : place_after_overflow();
  }
  /// The completion in next_place() is written, and may be polled.
  void publish(const WorkCompletion& completion);

  const std::shared_ptr<DeviceContext>& device() const { return device_; }

 private:
  friend class CompletionChannel;

  WorkCompletion* place_after_overflow();
  size_t take_completions(std::span<WorkCompletion> completions);
  bool resume_stalled();
  size_t sleep_and_poll(std::span<WorkCompletion> completions, Time deadline);

  std::shared_ptr<DeviceContext> device_;
  Engine& engine_;
  Counters& counters_;
  std::shared_ptr<CompletionChannel> channel_;
  const uint64_t context_;
  const uint32_t entries_;
  SpscRing<WorkCompletion> ring_;
  SpinFlag consumer_;
  std::atomic<bool> stalled_{false};  // a push found it full since the last step from here
  CompletionArming arming_;
  uint32_t raised_events_ = 0;  // waiting in the channel, under its mutex
  std::atomic<uint32_t> sleepers_{0};
  BlockingWait blocking_wait_;
};

}  // namespace diwarp::rnic
