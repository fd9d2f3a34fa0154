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

namespace {

/// So many bytes of messages are posted together: they fill a train of datagrams.
constexpr size_t kTogether = size_t{64} << 10;

}  // namespace

FlowSender::FlowSender(Endpoint& endpoint, const Peers& peers, const FlowPlan& plan)
    : endpoint_(endpoint),
      peers_(peers),
      plan_(plan),
      poller_(endpoint.completion_queue(), peers),
      patience_(patience(plan.size, plan.window, plan.rate)),
      limit_(peers.front().timeout() + patience_),
      credited_(peers.size()) {
  if (is_reliable(plan.transport)) patience_ = limit_;
}

std::vector<Json> FlowSender::send(uint64_t count, const Progress& progress) {
  start_ = last_credit_ = steady_clock::now();
  const uint64_t end = posted_ + count;
  const uint64_t first = posted_;
  while (posted_ < end) {
    post_all(end);
    progress(posted_ - first);
    if (posted_ < end) wait_for_room();
  }
  std::vector<Json> results = await_results(count);
  elapsed_ = last_credit_ - start_;
  return results;
}

bool FlowSender::may_post() const {
  return posted_ - credited() < plan_.window && posted_ - sent_ < plan_.window;
}

/// By the receiver that is behind.
uint64_t FlowSender::credited() const { return *std::ranges::min_element(credited_); }

/// Posts what the window has room for, small messages many at a time.
void FlowSender::post_all(uint64_t end) {
  while (posted_ < end && may_post()) {
    size_t bytes = 0;
    do {
      prepare_next();
      bytes += plan_.size;
    } while (bytes < kTogether && posted_ < end && may_post());
    endpoint_.post_prepared();
  }
}

void FlowSender::prepare_next() {
  const auto slot = static_cast<uint32_t>(posted_ % plan_.window);
  std::span<std::byte> message = endpoint_.send_slot(slot);
  if (plan_.operation == Operation::write) {
    set_mark(message, posted_ / plan_.window);
    message = contents_of(message);
  }
  write_message(message, posted_, Way::there, plan_.verify);
  endpoint_.prepare_send(slot, true, posted_);
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
  if (completions.empty()) peers_.look_at_others();
  return !completions.empty();
}

void FlowSender::take(const WorkCompletion& completion) {
  endpoint_.check(completion);
  if (!is_receive(completion)) {
    ++sent_;
    return;
  }
  if (const auto receiver = endpoint_.member_of(completion)) take_credit(completion, *receiver);
  endpoint_.post_receive_again(completion.wr_id);
}

void FlowSender::take_credit(const WorkCompletion& completion, size_t receiver) {
  uint64_t next = 0;
  const std::span<const std::byte> credit = endpoint_.message(completion);
  if (credit.size() != sizeof next) return;
  std::memcpy(&next, credit.data(), sizeof next);
  // Late credits are behind; of empty messages more may be credited than were thought arrived.
  next = std::min(next, posted_);
  if (next <= credited_[receiver]) return;
  credited_[receiver] = next;
  last_credit_ = steady_clock::now();
}

void FlowSender::write_off() {
  ++write_offs_;
  credited_.assign(credited_.size(), posted_);
  peers_.send({{"type", "skip"}, {"to", posted_}});
  await_words(steady_clock::now() + limit_);
  for (Control& control : peers_) control.expect("skipped");
}

/// Until each receiver has said something.
void FlowSender::await_words(Time deadline) {
  while (!peers_.pending() && steady_clock::now() < deadline) take_completions(deadline);
}

std::vector<Json> FlowSender::await_results(uint64_t count) {
  peers_.send({{"type", "sent"}, {"count", count}});
  await_words(steady_clock::now() + limit_ + patience_);
  std::vector<Json> results;
  for (Control& control : peers_) results.push_back(control.expect("result"));
  await_last_credits(results);
  return results;
}

/// The result may overtake them. If one got lost, the result's time is the best that is known.
void FlowSender::await_last_credits(const std::vector<Json>& results) {
  const Time told = steady_clock::now();
  const Time deadline = told + patience_;
  for (size_t i = 0; i < results.size(); ++i) {
    const uint64_t next = number_in(results[i], "next", 0, UINT64_MAX);
    while (credited_[i] < next && steady_clock::now() < deadline) take_completions(deadline);
    if (credited_[i] < next || last_credit_ == start_) last_credit_ = told;
  }
}

}  // namespace diwarp::tools
