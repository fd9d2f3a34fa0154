// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/completion_queue.h>
#include <infiniband/verbs.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "compat/common/use_count.h"
#include "compat/verbs/context.h"
#include "compat/verbs/long_waits.h"

namespace diwarp::compat {

class Cq;

/// The library's channel, whose descriptor the program gets: an event costs no thread more. Events
/// name completion queues by numbers that are never used again, so one that is on its way while its
/// queue is destroyed finds nothing.
class CompletionChannel final : public ibv_comp_channel, public WaitingChannel {
 public:
  explicit CompletionChannel(Context& context);
  ~CompletionChannel();
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  diwarp::CompletionChannel& channel() { return channel_; }

  uint64_t add(Cq& cq);
  /// No event of the queue is handed out after that.
  void remove(uint64_t number);
  /// The queue that has the next event, which counts as fetched. Waits for it as the descriptor's
  /// O_NONBLOCK says: throws Refusal(EAGAIN) where it is set and there is none, and (EINTR) where a
  /// signal's handler does not ask for a restart. A wait that lasts may end with an event of an
  /// armed queue that is empty: see LongWaits.
  Cq& take_event();
  void on_news() override;

  UseCount users;

 private:
  Cq* take_raised();
  Cq* fetched(uint64_t number);
  Cq* take_armed();
  Cq* drive();
  void wait();
  void put_token();

  const Use of_context_;
  Engine& engine_;
  std::atomic<bool> news_{false};
  diwarp::CompletionChannel channel_;
  std::mutex mutex_;  // guards what follows
  std::unordered_map<uint64_t, Cq*> queues_;
  uint64_t last_ = 0;
};

}  // namespace diwarp::compat
