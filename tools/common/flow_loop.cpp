// SPDX-License-Identifier: Apache-2.0
#include "common/flow_loop.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/failure.h"
#include "common/interrupt.h"
#include "common/spin.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

constexpr Duration kBetweenLooks = std::chrono::milliseconds(1);

}  // namespace

void FlowLoop::add(FlowParty& party, Endpoint& endpoint, const Peers& peers, uint32_t flow,
                   std::function<void()> over) {
  members_.push_back({&party, endpoint.queue_pair().number(), peers, flow, std::move(over)});
  if (endpoint.shape().grants == Access::remote_write && endpoint.shape().transport == QpType::rc)
    watching_.push_back(&party);
  for (Control& control : peers)
    if (std::ranges::find(controls_, &control) == controls_.end()) controls_.push_back(&control);
}

void FlowLoop::run(const std::function<void()>& between) {
  Time now = active_ = steady_clock::now();
  for (Member& member : members_) member.told_over = false;
  work(now);
  while (!is_over()) {
    const bool came = wait(now);
    now = steady_clock::now();
    if (came) dispatch(now);
    if (now >= next_look_) {
      look_at_peers(now);
      if (between) between();
      ProgressLine::tick();
    }
    work(now);
  }
}

bool FlowLoop::is_over() const { return std::ranges::all_of(members_, &Member::told_over); }

/// True if something came until the first party's silence means something, or a millisecond passed.
bool FlowLoop::wait(Time now) {
  const Time until = std::min(deadline(), now + kBetweenLooks);
  count_ = 0;
  const auto step = [this] { return sees_arrival() || poll(); };
  if (spin_until(until, step)) return true;
  rest(now, until);
  return count_ > 0;
}

bool FlowLoop::sees_arrival() const {
  return std::ranges::any_of(watching_, &FlowParty::sees_arrival);
}

void FlowLoop::rest(Time now, Time deadline) {
  const bool may =
      now - active_ > kAwake && deadline > now && watching_.empty() &&
      std::ranges::all_of(members_, [](const Member& member) { return member.party->may_rest(); });
  if (may) count_ = cq_.poll(completions_, kBetweenLooks);
}

Time FlowLoop::deadline() const {
  Time first = Time::max();
  for (const Member& member : members_) first = std::min(first, member.party->deadline());
  return first;
}

void FlowLoop::dispatch(Time now) {
  active_ = now;
  for (const WorkCompletion& completion : std::span(completions_).first(count_))
    member_of(completion.qp_number).party->take(completion, now);
}

FlowLoop::Member& FlowLoop::member_of(uint32_t queue_pair) {
  if (members_[last_].queue_pair != queue_pair) {
    const auto found = std::ranges::find(members_, queue_pair, &Member::queue_pair);
    if (found == members_.end()) throw Failure("A completion came from an unknown queue pair.");
    last_ = static_cast<size_t>(found - members_.begin());
  }
  return members_[last_];
}

void FlowLoop::look_at_peers(Time now) {
  next_look_ = now + kBetweenLooks;
  check_interrupted();
  for (Control* control : controls_) {
    control->look();
    hear(*control, now);
  }
}

/// What is not about a flow is for others, later.
void FlowLoop::hear(Control& control, Time now) {
  while (control.pending() && control.peek().contains("flow")) {
    const Json word = control.next();
    const uint64_t flow = number_in(word, "flow", 0, UINT32_MAX);
    const auto found = std::ranges::find_if(members_, [&](const Member& member) {
      return member.flow == flow && member.peers.index_of(control);
    });
    if (found == members_.end()) control.fail_word(text_in(word, "type"));
    found->party->hear(*found->peers.index_of(control), word, now);
    active_ = now;
  }
}

void FlowLoop::work(Time now) {
  for (Member& member : members_) {
    if (member.told_over) continue;
    if (now >= member.party->deadline()) member.party->expire(now);
    member.party->work(now);
    if (!member.party->done()) continue;
    member.told_over = true;
    if (member.over) member.over();
  }
}

std::vector<Json> run_source(FlowSource& source, Endpoint& endpoint, const Peers& peers,
                             uint64_t count) {
  FlowLoop loop(endpoint.completion_queue());
  loop.add(source, endpoint, peers);
  source.begin(count, steady_clock::now());
  loop.run();
  return source.results();
}

FlowCount run_sink(FlowSink& sink, Endpoint& endpoint, Control& control, uint64_t count) {
  FlowLoop loop(endpoint.completion_queue());
  loop.add(sink, endpoint, control);
  sink.begin(count, steady_clock::now());
  loop.run();
  return sink.count();
}

}  // namespace diwarp::tools
