// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <vector>

#include "base/readiness.h"
#include "base/unique_fd.h"
#include "bridge/owned.h"
#include "bridge/rdma_core.h"
#include "provider/completion_queue.h"

namespace diwarp::bridge {

class CompletionQueue;
class Device;

class CompletionChannel final : public provider::CompletionChannel {
 public:
  /// Throws Error.
  explicit CompletionChannel(std::shared_ptr<Device> device);

  std::optional<CompletionEvent> get_event(Duration timeout) override;
  int descriptor() const override { return readiness_.descriptor(); }

  ibv_comp_channel* get() const { return channel_.get(); }
  const Device* device() const { return device_.get(); }

  // Any thread.

  /// A queue whose events come here, until remove().
  void add(CompletionQueue& queue);
  void remove(CompletionQueue& queue);
  /// An event of a queue's that the device does not tell of.
  void push(CompletionQueue& queue);

 private:
  std::optional<CompletionEvent> take();
  std::optional<CompletionEvent> take_pushed();
  std::optional<CompletionEvent> take_from_device();
  std::optional<CompletionEvent> event_of(CompletionQueue* queue);

  const std::shared_ptr<Device> device_;
  Owned<ibv_comp_channel> channel_;
  UniqueFd pushes_;      // an eventfd, readable while pushed_ has something
  Readiness readiness_;  // of channel_ and pushes_
  std::mutex mutex_;     // guards what follows
  std::unordered_set<CompletionQueue*> queues_;
  std::vector<CompletionQueue*> pushed_;  // each once at most
};

}  // namespace diwarp::bridge
