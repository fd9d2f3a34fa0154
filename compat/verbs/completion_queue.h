// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/completion_queue.h>
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>

#include "compat/common/acknowledgements.h"
#include "compat/common/use_count.h"
#include "compat/verbs/completion_channel.h"
#include "compat/verbs/context.h"
#include "compat/verbs/last_sources.h"

namespace diwarp::compat {

/// A queue's place in the events of its channel; none without a channel.
class ChannelPlace {
 public:
  ChannelPlace(CompletionChannel* channel, Cq& cq);
  ~ChannelPlace() { leave(); }
  ChannelPlace(const ChannelPlace&) = delete;
  ChannelPlace& operator=(const ChannelPlace&) = delete;

  uint64_t number() const { return number_; }
  /// No event of the queue is handed out after that.
  void leave();

 private:
  CompletionChannel* channel_;
  const Use of_channel_;
  const uint64_t number_;
};

/// A completion queue. Its end is that of the longer structure, so that it can be both.
class Cq : public ibv_cq_ex {
 public:
  Cq(Context& context, int entries, void* program_context, ibv_comp_channel* its_channel,
     int vector);
  ~Cq();
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;

  ibv_cq* handle() { return reinterpret_cast<ibv_cq*>(static_cast<ibv_cq_ex*>(this)); }
  diwarp::CompletionQueue& queue() { return queue_; }
  int poll(int count, ibv_wc* completions);
  /// Polls one by one: the queue is this thread's from start_poll(), where that finds one, to
  /// end_poll().
  bool start_poll();
  bool next_poll();
  void end_poll() { mutex_.unlock(); }
  const ibv_wc& current() const { return current_; }
  /// Adds completions before all others, and an event if it is armed.
  void add(std::span<const ibv_wc> completions);
  void resize(int entries);
  void arm(bool solicited_only);
  /// Asked for an event, and none was fetched since.
  bool armed() const { return armed_.load(); }
  void count_fetched_event();
  /// Where the latest message that was polled of a UD queue pair came from; nothing: none was.
  std::optional<Address> last_source(uint32_t queue_pair) const;

  Acknowledgements acknowledgements;  ///< of completion events
  UseCount users;

 private:
  static constexpr size_t kBatch = 16;

  int poll_locked(int count, ibv_wc* completions);
  int take_added(int count, ibv_wc* completions);
  bool hand_out(const WorkCompletion& completion, ibv_wc& target);

  const Use of_context_;
  ChannelPlace place_;
  diwarp::CompletionQueue queue_;
  std::atomic<bool> armed_{false};
  std::mutex mutex_;  // guards what follows
  std::array<WorkCompletion, kBatch> batch_;
  LastSources sources_;
  ibv_wc current_{};
  std::mutex added_mutex_;  // guards added_; taken after all others
  std::deque<ibv_wc> added_;
  std::atomic<bool> any_added_{false};
};

/// Throws Refusal(EINVAL) for null.
Cq& cq_of(ibv_cq* cq);

}  // namespace diwarp::compat
