// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/blocking_wait.h"
#include "base/readiness.h"
#include "hybrid/halves.h"
#include "provider/arming.h"
#include "provider/completion_queue.h"

namespace diwarp::hybrid {

class Device;

/// The wish of a completion queue, both halves of which are armed.
struct Arming : provider::Arming {
  explicit Arming(uint64_t its_context) : context(its_context) {}
  const uint64_t context;  ///< the application's
};

/// Brings the events of both halves.
class CompletionChannel final : public provider::CompletionChannel {
 public:
  /// Throws Error.
  explicit CompletionChannel(std::shared_ptr<Device> device);

  std::optional<CompletionEvent> get_event(Duration timeout) override;
  int descriptor() const override { return readiness_.descriptor(); }

  const Halves<provider::CompletionChannel>& halves() const { return halves_; }
  const std::shared_ptr<Device>& device() const { return device_; }
  /// The context that the halves of a new queue give to their events.
  uint64_t add(const std::shared_ptr<Arming>& queue);
  void remove(uint64_t key);
  /// Has one thread return from get_event(), with an event of no queue.
  void wake() { wakes_.wake(); }

 private:
  std::optional<CompletionEvent> take();
  std::optional<CompletionEvent> take_from(provider::CompletionChannel& half);
  std::optional<CompletionEvent> event_of(uint64_t key);

  const std::shared_ptr<Device> device_;
  const Halves<provider::CompletionChannel> halves_;
  BlockingWait wakes_;
  Readiness readiness_;            // of the halves, and wakes_
  std::atomic<unsigned> turn_{0};  // which half is asked first

  std::mutex mutex_;  // guards what follows
  uint64_t last_key_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Arming>> queues_;
};

}  // namespace diwarp::hybrid
