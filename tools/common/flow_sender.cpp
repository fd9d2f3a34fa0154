// SPDX-License-Identifier: Apache-2.0
#include "common/flow_sender.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/mark.h"
#include "common/pairing.h"
#include "common/pattern.h"

namespace diwarp::tools {

namespace {

/// So many bytes of messages are posted together: they fill a train of datagrams.
constexpr size_t kTogether = size_t{64} << 10;

}  // namespace

FlowSender::FlowSender(Endpoint& endpoint, const Peers& peers, const FlowPlan& plan, uint32_t flow)
    : endpoint_(endpoint),
      peers_(peers),
      plan_(plan),
      flow_(flow),
      patience_(patience(plan.size, plan.window, plan.rate)),
      limit_(peers.front().timeout() + patience_),
      answered_(peers.size()),
      credited_(peers.size()) {
  if (is_reliable(plan.transport)) patience_ = limit_;
}

void FlowSender::begin(uint64_t count, Time now) {
  stage_ = Stage::posting;
  first_ = posted_;
  end_ = posted_ + count;
  results_.assign(peers_.size(), Json());
  started_ = ended_ = last_credit_ = since_ = now;
}

void FlowSender::work(Time now) {
  if (stage_ != Stage::posting) return;
  if (posted_ == first_) started_ = ended_ = last_credit_ = since_ = now;
  post_all();
  if (posted_ == end_) say({{"type", "sent"}, {"count", end_ - first_}}, Stage::reporting, now);
}

bool FlowSender::may_post() const {
  return posted_ < end_ && posted_ - credited() < plan_.window && posted_ - sent_ < plan_.window;
}

/// By the receiver that is behind.
uint64_t FlowSender::credited() const { return *std::ranges::min_element(credited_); }

/// Posts what the window has room for, small messages many at a time.
void FlowSender::post_all() {
  while (may_post()) {
    size_t bytes = 0;
    do {
      prepare_next();
      bytes += plan_.size;
    } while (bytes < kTogether && may_post());
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

void FlowSender::take(const WorkCompletion& completion, Time now) {
  endpoint_.check(completion);
  if (stage_ == Stage::posting) since_ = now;
  if (!is_receive(completion)) {
    ++sent_;
    return;
  }
  if (const auto receiver = endpoint_.member_of(completion))
    take_credit(completion, *receiver, now);
  endpoint_.post_receive_again(completion.wr_id);
}

void FlowSender::take_credit(const WorkCompletion& completion, size_t receiver, Time now) {
  uint64_t next = 0;
  const std::span<const std::byte> credit = endpoint_.message(completion);
  if (credit.size() != sizeof next) return;
  std::memcpy(&next, credit.data(), sizeof next);
  // Late credits are behind; of empty messages more may be credited than were thought arrived.
  next = std::min(next, posted_);
  if (next <= credited_[receiver]) return;
  credited_[receiver] = next;
  last_credit_ = now;
  if (stage_ == Stage::settling && credits_are_in()) finish(now);
}

Time FlowSender::deadline() const {
  switch (stage_) {
    case Stage::posting:
    case Stage::settling:
      return since_ + patience_;
    case Stage::skipping:
      return since_ + limit_ + peers_.front().timeout();
    case Stage::reporting:
      return since_ + limit_ + patience_ + peers_.front().timeout();
    case Stage::done:
      break;
  }
  return Time::max();
}

void FlowSender::expire(Time now) {
  if (stage_ == Stage::settling) return finish(now);
  if (stage_ != Stage::posting) {
    const auto silent = std::ranges::find(answered_, false) - answered_.begin();
    peers_[static_cast<size_t>(silent)].fail_silence();
  }
  if (is_reliable(plan_.transport) || now - last_credit_ > limit_) {
    throw Failure("Nothing that was sent reached " + endpoint_.peer().to_string() + " within " +
                  to_text(limit_) + ".");
  }
  write_off(now);
}

void FlowSender::write_off(Time now) {
  ++write_offs_;
  credited_.assign(credited_.size(), posted_);
  say({{"type", "skip"}, {"to", posted_}}, Stage::skipping, now);
}

/// Each receiver is to answer.
void FlowSender::say(Json word, Stage next, Time now) {
  word["flow"] = flow_;
  stage_ = next;
  since_ = now;
  answered_.assign(answered_.size(), false);
  peers_.send(word);
}

bool FlowSender::all_answered(size_t peer) {
  answered_[peer] = true;
  return std::ranges::all_of(answered_, std::identity());
}

void FlowSender::hear(size_t peer, const Json& word, Time now) {
  const std::string type = text_in(word, "type");
  if (stage_ == Stage::skipping && type == "skipped") {
    if (!all_answered(peer)) return;
    stage_ = Stage::posting;
    since_ = now;
  } else if (stage_ == Stage::reporting && type == "result") {
    results_[peer] = word;
    if (!all_answered(peer)) return;
    stage_ = Stage::settling;
    since_ = now;
    if (credits_are_in()) finish(now);
  } else {
    peers_[peer].fail_word(type);
  }
}

bool FlowSender::credits_are_in() const {
  for (size_t i = 0; i < results_.size(); ++i)
    if (credited_[i] < number_in(results_[i], "next", 0, UINT64_MAX)) return false;
  return true;
}

/// If the last credit got lost, the result's time is the best that is known.
void FlowSender::finish(Time) {
  ended_ = credits_are_in() && last_credit_ != started_ ? last_credit_ : since_;
  stage_ = Stage::done;
}

}  // namespace diwarp::tools
