// SPDX-License-Identifier: Apache-2.0
#include "common/flow_receiver.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/pairing.h"

namespace diwarp::tools {
namespace {

/// A credit goes out at the latest when so long nothing came.
constexpr Duration kIdle = std::chrono::microseconds(50);

/// After so many looks in a row that bring nothing, all that had come to this host has been taken.
constexpr int kQuietLooks = 64;

}  // namespace

FlowReceiver::FlowReceiver(Endpoint& endpoint, Control& control, const FlowPlan& plan,
                           uint32_t flow)
    : endpoint_(endpoint),
      control_(control),
      window_(plan.window),
      flow_(flow),
      arrivals_(endpoint, plan),
      patience_(patience(plan.size, plan.window, plan.rate)),
      limit_(control.timeout() + patience_) {
  if (is_reliable(plan.transport)) patience_ = limit_;
}

void FlowReceiver::begin(uint64_t count, Time now) {
  arrivals_.begin(count);
  stage_ = Stage::receiving;
  since_ = heard_ = now;
}

void FlowReceiver::work(Time now) {
  while (arrivals_.next_is_written()) {
    arrivals_.take_written();
    note_arrival(now);
    give_credit_in_time();
  }
  if (stage_ == Stage::straggling) straggle();
}

void FlowReceiver::note_arrival(Time now) {
  since_ = heard_ = now;
  quiet_ = 0;
}

void FlowReceiver::take(const WorkCompletion& completion, Time now) {
  endpoint_.check(completion);
  note_arrival(now);
  if (!is_receive(completion)) {
    --credits_open_;
    return;
  }
  if (endpoint_.is_from_peer(completion)) arrivals_.take(completion);
  endpoint_.post_receive_again(completion.wr_id);
  give_credit_in_time();
}

void FlowReceiver::hear(size_t, const Json& word, Time now) {
  const std::string type = text_in(word, "type");
  if (stage_ != Stage::receiving || (type != "sent" && type != "skip")) control_.fail_word(type);
  since_ = heard_ = now;
  if (type == "skip") return begin_skip(word, now);
  stage_ = Stage::straggling;
  straggle();
}

/// The sender counts all before `to` as arrived or lost, and waits for the answer before it writes
/// their slots again. Until then their records can be verified.
void FlowReceiver::begin_skip(const Json& word, Time now) {
  skipped_to_ = number_in(word, "to", 0, arrivals_.end());
  if (!arrivals_.recorded()) return end_skip(now);
  stage_ = Stage::ending;
  quiet_ = 0;
}

/// An open record could be written on when its slot has the next one already. It is over when its
/// last byte came, or nothing more did for record_timeout.
void FlowReceiver::look_for_open_records(Time now) {
  const bool open = !endpoint_.queue_pair().open_records().empty();
  quiet_ = open ? 0 : quiet_ + 1;
  if (quiet_ > kQuietLooks || now - heard_ > limit_) end_skip(now);
}

void FlowReceiver::end_skip(Time now) {
  stage_ = Stage::receiving;
  since_ = heard_ = now;
  credited_ = arrivals_.skip(skipped_to_);
  control_.send({{"type", "skipped"}, {"flow", flow_}});
}

/// Messages that were sent may still be on their way; over UD they may also be lost.
void FlowReceiver::straggle() {
  if (!arrivals_.all_came()) return;
  give_credit();
  stage_ = Stage::done;
}

Time FlowReceiver::deadline() const {
  switch (stage_) {
    case Stage::receiving:
      return since_ + (credit_is_due() ? kIdle : patience_);
    case Stage::ending:
      return since_;
    case Stage::straggling:
      return since_ + patience_;
    case Stage::done:
      break;
  }
  return Time::max();
}

void FlowReceiver::expire(Time now) {
  if (stage_ == Stage::ending) return look_for_open_records(now);
  give_credit();
  since_ = now;
  if (stage_ == Stage::straggling) {
    stage_ = Stage::done;
  } else if (now - heard_ > limit_) {
    throw Failure("Nothing came from " + endpoint_.peer().to_string() + " for " + to_text(limit_) +
                  ".");
  }
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
