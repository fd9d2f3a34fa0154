// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "diwarp/attributes.h"
#include "diwarp/detail/handle.h"
#include "diwarp/device.h"
#include "diwarp/types.h"

namespace diwarp {

namespace provider {
class CompletionChannel;
class CompletionQueue;
}  // namespace provider

/// Where armed completion queues tell that a completion came: the way to sleep instead of polling.
/// One channel may serve several queues.
class DIWARP_EXPORT CompletionChannel {
 public:
  explicit CompletionChannel(const Device& device);

  /// The next event; nothing after `timeout` (negative: waits for ever). With Progress::manual it
  /// steps the engine while it waits.
  std::optional<CompletionEvent> get_event(Duration timeout);

  /// A descriptor that polls readable while events wait. Do not read from it.
  int descriptor() const;

 private:
  friend class detail::HandleAccess;
  detail::Handle<provider::CompletionChannel> impl_;
};

/// A queue of completions, shared by any number of queue pairs. It never overflows: a completion
/// that finds it full waits at its queue pair, which then takes no new work of that kind.
class DIWARP_EXPORT CompletionQueue {
 public:
  /// Room for `entries` completions (1 to 1,048,576). `context` comes back in events.
  CompletionQueue(const Device& device, uint32_t entries);
  CompletionQueue(const Device& device, uint32_t entries, const CompletionChannel& channel,
                  uint64_t context = 0);

  /// Takes up to completions.size() entries without waiting; returns how many. Steps the engine if
  /// nobody else does.
  size_t poll(std::span<WorkCompletion> completions);

  /// The same, but waits up to `timeout` (negative: for ever) for the first one. Spins first, then
  /// sleeps. Over datagrams nothing may ever arrive (datagram-iWARP, section IV: polling needs a
  /// timeout).
  size_t poll(std::span<WorkCompletion> completions, Duration timeout);

  /// One completion, waiting up to `timeout` (negative: for ever).
  std::optional<WorkCompletion> wait(Duration timeout);
  /// One completion, waiting as long as it takes.
  WorkCompletion wait();

  /// Asks for one event on the channel at the next completion; with `solicited_only`, at the next
  /// that is solicited or failed. Completions already in the queue give none: poll once more after
  /// arming. An event may come late, when its completion has been polled already; a late event does
  /// not use up a new arming.
  void arm(bool solicited_only = false);

  uint32_t entries() const;

 private:
  friend class CompletionQueueRef;
  friend class detail::HandleAccess;
  detail::Handle<provider::CompletionQueue> impl_;
};

/// Names a completion queue in QueuePairInit; made from a CompletionQueue, which must not
/// be dead (else it throws Error).
class CompletionQueueRef {
 public:
  CompletionQueueRef() = default;
  CompletionQueueRef(const CompletionQueue& cq)  // NOLINT: meant to convert
      : impl_(cq.impl_.shared()) {}

 private:
  friend class detail::HandleAccess;
  std::shared_ptr<provider::CompletionQueue> impl_;
};

}  // namespace diwarp
