// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/completion_queue.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "compat/common/use_count.h"
#include "compat/verbs/context.h"

namespace diwarp::compat {

class Cq;

/// The library's channel, whose descriptor the program gets: an event costs no thread more. Events
/// name completion queues by numbers that are never used again, so one that is on its way while its
/// queue is destroyed finds nothing.
///
/// Some programs sleep for an event while they wait for memory that the peer is to write: perftest
/// counts the receives of an iWARP peer so. Adapters raise no event for that, and where the write
/// comes a moment too late, such a program never wakes. Here a wait that lasts, and during which
/// peers sent something, ends with an event of an armed queue that may be empty.
class CompletionChannel : public ibv_comp_channel {
 public:
  explicit CompletionChannel(Context& context);

  diwarp::CompletionChannel& channel() { return channel_; }

  uint64_t add(Cq& cq);
  /// No event of the queue is handed out after that.
  void remove(uint64_t number);
  /// The queue that has the next event, which counts as fetched. Waits for it as the descriptor's
  /// O_NONBLOCK says; throws Refusal(EAGAIN) where it is set and there is none.
  Cq& take_event();

  UseCount users;

 private:
  bool may_wait() const;
  Cq* fetched(uint64_t number);
  Cq* armed_with_news();

  const Use of_context_;
  const diwarp::Device& device_;
  diwarp::CompletionChannel channel_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, Cq*> queues_;
  uint64_t last_ = 0;
  uint64_t received_ = 0;  // bytes that had come when that was looked at last
};

}  // namespace diwarp::compat
