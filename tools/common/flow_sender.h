// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "common/endpoint.h"
#include "common/flow.h"

namespace diwarp::tools {

/// Posts messages; the time of the last is that of the last credit that told of an arrival. The
/// slowest receiver sets the pace.
class FlowSender final : public FlowSource {
 public:
  FlowSender(Endpoint& endpoint, const Peers& peers, const FlowPlan& plan, uint32_t flow = 0);

  void begin(uint64_t count, Time now) override;
  bool done() const override { return stage_ == Stage::done; }
  void work(Time now) override;
  void take(const WorkCompletion& completion, Time now) override;
  void hear(size_t peer, const Json& word, Time now) override;
  Time deadline() const override;
  void expire(Time now) override;
  uint64_t posted() const override { return posted_ - first_; }

 private:
  enum class Stage : uint8_t {
    posting,
    skipping,   ///< a window was written off; the receivers have not confirmed it
    reporting,  ///< all is sent; the receivers have not told what came
    settling,   ///< they have, and the result overtook the last credits
    done,
  };

  bool may_post() const;
  uint64_t credited() const;
  void post_all();
  void prepare_next();
  void take_credit(const WorkCompletion& completion, size_t receiver, Time now);
  void write_off(Time now);
  void say(Json word, Stage next, Time now);
  bool all_answered(size_t peer);
  bool credits_are_in() const;
  void finish(Time now);

  Endpoint& endpoint_;
  Peers peers_;
  FlowPlan plan_;
  uint32_t flow_;
  Duration patience_;  // without any progress, before the window is given up
  Duration limit_;     // without any credit
  Stage stage_ = Stage::done;
  std::vector<bool> answered_;  // which peer, in the stage
  Time since_{};                // the last progress, or when the stage began
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  uint64_t posted_ = 0;
  uint64_t sent_ = 0;               // completed
  std::vector<uint64_t> credited_;  // of each receiver: numbers below have arrived or are lost
  Time last_credit_{};
};

}  // namespace diwarp::tools
