// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/completion_queue.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "diwarp/error.h"
#include "rnic/context/device_context.h"
#include "rnic/engine/blocking_call.h"
#include "rnic/queues/message_log.h"

namespace diwarp::rnic {

namespace {

uint32_t checked_entries(uint32_t entries) {
  if (entries == 0 || entries > kMaxEntries)
    throw Error(make_error_code(Errc::invalid_argument),
                "A completion queue has 1 to 1048576 entries, not " + std::to_string(entries));
  return entries;
}

/// In manual mode another thread may have stepped the engine and left nothing to see in the poller.
constexpr Duration kManualPollWait = std::chrono::milliseconds(10);

}  // namespace

// --- The channel.

CompletionChannel::CompletionChannel(std::shared_ptr<DeviceContext> device)
    : device_(std::move(device)) {}

void CompletionChannel::raise(CompletionQueue& cq) {
  {
    const std::lock_guard lock(mutex_);
    if (cq.raised_events_++ == 0) raised_.push_back(cq);
  }
  blocking_wait_.wake();
}

void CompletionChannel::forget(CompletionQueue& cq) {
  const std::lock_guard lock(mutex_);
  raised_.remove(cq);
}

/// Nothing if the queue whose event woke us was destroyed meanwhile.
std::optional<CompletionEvent> CompletionChannel::take_event() {
  const std::lock_guard lock(mutex_);
  CompletionQueue* cq = raised_.pop_front();
  if (cq == nullptr) return std::nullopt;
  if (--cq->raised_events_ != 0) raised_.push_back(*cq);
  return CompletionEvent{cq->context_};
}

std::optional<CompletionEvent> CompletionChannel::get_event(Duration timeout) {
  return take_woken(device_->engine(), blocking_wait_, timeout, [this] { return take_event(); });
}

// --- The queue.

CompletionQueue::CompletionQueue(std::shared_ptr<DeviceContext> device, uint32_t entries,
                                 std::shared_ptr<CompletionChannel> channel, uint64_t context)
    : device_(std::move(device)),
      engine_(device_->engine()),
      counters_(device_->counters()),
      channel_(std::move(channel)),
      context_(context),
      entries_(checked_entries(entries)),
      ring_(entries_) {  // guard(rows:cq-bounded): ring_(entries_) => ring_(2 * entries_)
  counters_.add_shared(Meter::completion_queues);
  counters_.add_shared(Meter::completion_entries, entries_);
}

CompletionQueue::~CompletionQueue() {
  if (channel_) channel_->forget(*this);
  counters_.add_shared(Meter::completions_polled, ring_.size());  // they are gone as well
  counters_.subtract_shared(Meter::completion_entries, entries_);
  counters_.subtract_shared(Meter::completion_queues);
}

WorkCompletion* CompletionQueue::place_after_overflow() {
  if (!stalled_.exchange(true))  // guard(completion): condition => false
    device_->raise({.type = AsyncEventType::cq_overflow, .context = context_});
  return ring_.free_place();  // polled just now, by a thread that did not see the mark
}

void CompletionQueue::publish(const WorkCompletion& completion) {
  if (log::shows(LogLevel::trace)) [[unlikely]]
    message_log::completed(device_->name(), completion);
  const bool solicited = completion.solicited || completion.status != WcStatus::success;
  const uint64_t index = ring_.publish();
  counters_.add(Meter::completions);
  // This and the consumer's own exchange on sleepers_ have an order: the second sees what the
  // first wrote before. A plain load could overtake the push, and a waiting thread would not be
  // woken.
  const uint32_t sleepers = sleepers_.fetch_add(0);
  if (arming_.armed() && arming_.take(index, solicited) && channel_) channel_->raise(*this);
  if (sleepers != 0) blocking_wait_.wake(sleepers);  // guard(stack)
}

size_t CompletionQueue::take_completions(std::span<WorkCompletion> completions) {
  if (ring_.size() == 0) return 0;
  const std::lock_guard lock(consumer_);
  const size_t count = ring_.pop(completions);
  if (count != 0) counters_.add_shared(Meter::completions_polled, count);
  return count;
}

size_t CompletionQueue::poll(std::span<WorkCompletion> completions) {
  // Asked here as well: a call would save registers where there is nothing to take.
  const size_t count = ring_.size() == 0 ? 0 : take_completions(completions);
  const bool resumed = resume_stalled();
  if (count != 0 && !resumed) return count;
  engine_.poll_step();
  return count != 0 || ring_.size() == 0 ? count : take_completions(completions);
}

/// If queue pairs found this queue full, they may go on now. Asked in every poll, and once more
/// before sleeping: a mark that one poll was too early to see is seen by the next.
bool CompletionQueue::resume_stalled() {
  if (!stalled_.load(std::memory_order_relaxed) || ring_.size() == entries_) return false;
  stalled_.store(false);
  engine_.unstall();
  return true;
}

size_t CompletionQueue::poll(std::span<WorkCompletion> completions, Duration timeout) {
  if (size_t count = poll(completions)) return count;
  const Time start = engine_.clock().now();
  const Time deadline = deadline_after(start, timeout);
  const Time spin_end = std::min(deadline, saturating_add(start, engine_.options().spin));
  while (engine_.clock().now() < spin_end)
    if (size_t count = poll(completions)) return count;
  return sleep_and_poll(completions, deadline);
}

size_t CompletionQueue::sleep_and_poll(std::span<WorkCompletion> completions, Time deadline) {
  for (;;) {
    const Time now = engine_.clock().now();
    if (now >= deadline) return take_completions(completions);
    const Duration left = std::min<Duration>(deadline - now, kLongestWait);
    if (!engine_.has_thread()) {
      engine_.wait_for_work(std::min(left, kManualPollWait));
      if (size_t count = poll(completions)) return count;
      continue;
    }
    // Counted first, then looked: a push that comes after the look sees the waiting thread.
    sleepers_.fetch_add(1);
    resume_stalled();
    engine_.hand_over();
    size_t count = take_completions(completions);
    if (count == 0) blocking_wait_.wait(left);
    sleepers_.fetch_sub(1);
    if (count == 0) count = take_completions(completions);
    if (count != 0) return count;
  }
}

void CompletionQueue::arm(bool solicited_only) {
  arming_.arm(ring_.pushed(), solicited_only);
  sleepers_.fetch_add(0);  // meets push(): it sees the arming, or the next poll sees the completion
  resume_stalled();
  // From now on nobody may poll: the RNIC thread has to watch the sockets.
  engine_.hand_over();
}

}  // namespace diwarp::rnic
