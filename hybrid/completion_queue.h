// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "diwarp/types.h"
#include "hybrid/completion_channel.h"
#include "hybrid/halves.h"
#include "provider/completion_queue.h"

namespace diwarp::hybrid {

class Device;

/// A completion queue of each half, polled in turn: each has room for `entries`.
class CompletionQueue final : public provider::CompletionQueue {
 public:
  /// Throws Error. `channel` may be null.
  CompletionQueue(std::shared_ptr<Device> device, uint32_t entries,
                  std::shared_ptr<CompletionChannel> channel, uint64_t context);
  ~CompletionQueue() override;

  size_t poll(std::span<WorkCompletion> completions) override;
  size_t poll(std::span<WorkCompletion> completions, Duration timeout) override;
  void arm(bool solicited_only) override;
  uint32_t entries() const override { return halves_.software->entries(); }

  const Device* device() const { return device_.get(); }
  /// The queue that queue pairs of this half complete to. From now on it is polled.
  const std::shared_ptr<provider::CompletionQueue>& use(Half half);

 private:
  size_t poll_used(std::span<WorkCompletion> completions);
  void arm_halves(bool solicited_only);
  void serve_unused(bool idle);
  size_t sleep(std::span<WorkCompletion> completions, Duration limit);

  const std::shared_ptr<Device> device_;
  const bool has_own_channel_;  // the application has given none
  const std::shared_ptr<CompletionChannel> channel_;
  const std::shared_ptr<Arming> arming_;
  const uint64_t key_;  // of the events
  Halves<provider::CompletionQueue> halves_;
  std::atomic<bool> software_used_{false};
  std::atomic<bool> hardware_used_{false};
  std::atomic<unsigned> polls_{0};
  std::atomic<unsigned> turn_{0};      // which half is polled first
  std::atomic<uint32_t> sleepers_{0};  // threads, on a channel of the queue's own
};

}  // namespace diwarp::hybrid
