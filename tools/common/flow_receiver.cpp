// SPDX-License-Identifier: Apache-2.0
#include "common/flow_receiver.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/pairing.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

/// A credit goes out at the latest when so long nothing came.
constexpr Duration kIdle = std::chrono::microseconds(50);

/// After so many polls in a row that bring nothing, all that had come to this host has been taken.
constexpr int kQuietPolls = 64;

}  // namespace

FlowReceiver::FlowReceiver(Endpoint& endpoint, Control& control, const FlowPlan& plan)
    : endpoint_(endpoint),
      control_(control),
      window_(plan.window),
      poller_(endpoint.completion_queue(), control),
      arrivals_(endpoint, plan),
      patience_(patience(plan.size, plan.window, plan.rate)),
      limit_(control.timeout() + patience_) {
  if (is_reliable(plan.transport)) patience_ = limit_;
}

FlowCount FlowReceiver::receive(uint64_t count) {
  arrivals_.begin(count);
  await_end();
  await_stragglers();
  return arrivals_.count();
}

/// Until the sender says that it sent all.
void FlowReceiver::await_end() {
  Time last = steady_clock::now();
  while (true) {
    const Time now = steady_clock::now();
    if (take_completions(now + (credit_is_due() ? kIdle : patience_))) {
      last = now;
      continue;
    }
    give_credit();
    if (control_.pending()) {
      if (take_word_of_sender()) return;
      last = now;
    } else if (now - last > limit_) {
      throw Failure("Nothing came from " + endpoint_.peer().to_string() + " for " +
                    to_text(limit_) + ".");
    }
  }
}

/// True if it says that it sent all.
bool FlowReceiver::take_word_of_sender() {
  const Json word = control_.next();
  if (word["type"] == "sent") return true;
  if (word["type"] != "skip") throw Failure("The peer said something unexpected in the run.");
  end_skipped(number_in(word, "to", 0, arrivals_.end()));
  return false;
}

/// The sender counts all before `to` as arrived or lost, and waits for the answer before it writes
/// their slots again. Until then their records can be verified.
void FlowReceiver::end_skipped(uint64_t to) {
  if (arrivals_.recorded()) end_open_records();
  credited_ = arrivals_.skip(to);
  control_.send({{"type", "skipped"}});
}

/// An open record could be written on when its slot has the next one already. It is over when its
/// last byte came, or nothing more did for record_timeout.
void FlowReceiver::end_open_records() {
  const Time deadline = steady_clock::now() + limit_;
  for (int quiet = 0; quiet < kQuietPolls && steady_clock::now() < deadline; ++quiet)
    if (take_completions(steady_clock::now()) || !endpoint_.queue_pair().open_records().empty())
      quiet = -1;
}

/// Messages that were sent may still be on their way; over UD they may also be lost.
void FlowReceiver::await_stragglers() {
  while (!arrivals_.all_came() && take_completions(steady_clock::now() + patience_)) {
  }
  give_credit();
}

/// False if nothing came until the deadline, or the peer said something.
bool FlowReceiver::take_completions(Time deadline) {
  const auto completions = poller_.next(deadline, [this] { return arrivals_.next_is_written(); });
  for (const WorkCompletion& completion : completions) take(completion);
  const bool written = arrivals_.next_is_written();
  while (arrivals_.next_is_written()) {
    arrivals_.take_written();
    give_credit_in_time();
  }
  return written || !completions.empty();
}

void FlowReceiver::take(const WorkCompletion& completion) {
  endpoint_.check(completion);
  if (!is_receive(completion)) {
    --credits_open_;
    return;
  }
  if (endpoint_.is_from_peer(completion)) arrivals_.take(completion);
  endpoint_.post_receive_again(completion.wr_id);
  give_credit_in_time();
}

void FlowReceiver::give_credit_in_time() {
  const uint64_t quantum = std::max(window_ / 4, 1u);
  const uint64_t upto = arrivals_.creditable();
  if (upto >= credited_ + quantum || upto == arrivals_.end()) give_credit();
}

bool FlowReceiver::credit_is_due() const { return arrivals_.creditable() > credited_; }

void FlowReceiver::give_credit() {
  const EndpointShape& shape = endpoint_.shape();
  // With all slots in use the next credit tells this one's news, too.
  if (!credit_is_due() || credits_open_ == shape.send_slots) return;
  const auto slot = static_cast<uint32_t>(credits_ % shape.send_slots);
  const uint64_t upto = arrivals_.creditable();
  std::memcpy(endpoint_.send_slot(slot).data(), &upto, sizeof upto);
  endpoint_.post_send(slot);
  credited_ = upto;
  ++credits_;
  ++credits_open_;
}

}  // namespace diwarp::tools
