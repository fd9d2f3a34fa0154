// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/flow.h"
#include "common/mark.h"
#include "common/pairing.h"
#include "common/pattern.h"

namespace diwarp::tools {

using std::chrono::steady_clock;

FlowSender::FlowSender(Endpoint& endpoint, Control& control, const FlowPlan& plan)
    : endpoint_(endpoint),
      control_(control),
      plan_(plan),
      poller_(endpoint.completion_queue(), control),
      patience_(patience(plan.size, plan.window, plan.rate)),
      limit_(control.timeout() + patience_) {
  if (is_reliable(plan.transport)) patience_ = limit_;
}

Json FlowSender::send(uint64_t count, const Progress& progress) {
  start_ = last_credit_ = steady_clock::now();
  const uint64_t end = posted_ + count;
  const uint64_t first = posted_;
  while (posted_ < end) {
    while (posted_ < end && may_post()) post_next();
    progress(posted_ - first);
    if (posted_ < end) wait_for_room();
  }
  Json result = await_result(count);
  elapsed_ = last_credit_ - start_;
  return result;
}

bool FlowSender::may_post() const {
  return posted_ - credited_ < plan_.window && posted_ - sent_ < plan_.window;
}

void FlowSender::post_next() {
  const auto slot = static_cast<uint32_t>(posted_ % plan_.window);
  std::span<std::byte> message = endpoint_.send_slot(slot);
  if (plan_.operation == Operation::write) {
    set_mark(message, posted_ / plan_.window);
    message = contents_of(message);
  }
  write_message(message, posted_, Way::there, plan_.verify);
  endpoint_.post_send(slot, true, posted_);
  ++posted_;
}

void FlowSender::wait_for_room() {
  if (take_completions(steady_clock::now() + patience_)) return;
  const bool hopeless = steady_clock::now() - last_credit_ > limit_;
  if (is_reliable(plan_.transport) || hopeless) {
    throw Failure("Nothing that was sent reached " + endpoint_.peer().to_string() + " within " +
                  to_text(limit_) + ".");
  }
  write_off();
}

/// False if nothing completed until the deadline, or the peer said something.
bool FlowSender::take_completions(Time deadline) {
  const auto completions = poller_.next(deadline);
  for (const WorkCompletion& completion : completions) take(completion);
  return !completions.empty();
}

void FlowSender::take(const WorkCompletion& completion) {
  endpoint_.check(completion);
  if (!is_receive(completion)) {
    ++sent_;
    return;
  }
  if (endpoint_.is_from_peer(completion)) take_credit(completion);
  endpoint_.post_receive_again(completion.wr_id);
}

void FlowSender::take_credit(const WorkCompletion& completion) {
  uint64_t next = 0;
  const std::span<const std::byte> credit = endpoint_.message(completion);
  if (credit.size() != sizeof next) return;
  std::memcpy(&next, credit.data(), sizeof next);
  // Late credits are behind; of empty messages more may be credited than were thought arrived.
  next = std::min(next, posted_);
  if (next <= credited_) return;
  credited_ = next;
  last_credit_ = steady_clock::now();
}

void FlowSender::write_off() {
  ++write_offs_;
  credited_ = posted_;
  control_.send({{"type", "skip"}, {"to", posted_}});
}

Json FlowSender::await_result(uint64_t count) {
  control_.send({{"type", "sent"}, {"count", count}});
  const Time deadline = steady_clock::now() + limit_ + patience_;
  while (!control_.pending() && steady_clock::now() < deadline) take_completions(deadline);
  Json result = control_.expect("result");
  await_last_credit(number_in(result, "next", 0, UINT64_MAX));
  return result;
}

/// The result may overtake it. If it got lost, the result's time is the best that is known.
void FlowSender::await_last_credit(uint64_t next) {
  const Time told = steady_clock::now();
  const Time deadline = told + patience_;
  while (credited_ < next && steady_clock::now() < deadline) take_completions(deadline);
  if (credited_ < next || last_credit_ == start_) last_credit_ = told;
}

}  // namespace diwarp::tools
