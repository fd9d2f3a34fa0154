// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "common/flow.h"

namespace diwarp::tools {

/// Runs this end's parties of all flows that go at the same time, over one completion queue. It
/// polls without sleeping, as a measurement wants, and looks after the peers and the user once a
/// millisecond.
class FlowLoop {
 public:
  explicit FlowLoop(CompletionQueue& cq) : cq_(cq) {}

  /// The flow with this number between this end and these peers, over the endpoint's queue pair.
  /// `over` is called when it is done, each time.
  void add(FlowParty& party, Endpoint& endpoint, const Peers& peers, uint32_t flow = 0,
           std::function<void()> over = {});

  /// Until all parties, which have begun, are done. `between` is called now and then. Throws
  /// PeerGone, Interrupted, and what the parties do.
  void run(const std::function<void()>& between = {});

 private:
  struct Member {
    FlowParty* party;
    uint32_t queue_pair;  // its number
    Peers peers;
    uint32_t flow;
    std::function<void()> over;
    bool told_over = false;
  };

  bool wait(Time now);
  bool poll() { return (count_ = cq_.poll(completions_)) > 0; }
  bool sees_arrival() const;
  void rest(Time now, Time deadline);
  Time deadline() const;
  void dispatch(Time now);
  Member& member_of(uint32_t queue_pair);
  void look_at_peers(Time now);
  void hear(Control& control, Time now);
  void work(Time now);
  bool is_over() const;

  CompletionQueue& cq_;
  std::vector<Member> members_;
  std::vector<FlowParty*> watching_;  // those that see arrivals which no completion tells of
  std::vector<Control*> controls_;    // of all members, each once
  size_t last_ = 0;                   // whose completion came last
  std::array<WorkCompletion, 32> completions_;
  size_t count_ = 0;
  Time active_{};     // when something came last
  Time next_look_{};  // at the peers
};

/// One flow alone: the next `count` messages of it.
std::vector<Json> run_source(FlowSource& source, Endpoint& endpoint, const Peers& peers,
                             uint64_t count);
FlowCount run_sink(FlowSink& sink, Endpoint& endpoint, Control& control, uint64_t count);

}  // namespace diwarp::tools
