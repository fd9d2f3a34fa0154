// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/endpoint.h"
#include "common/flow.h"
#include "common/flow_arrivals.h"
#include "common/poller.h"

namespace diwarp::tools {

/// Takes messages and gives credits for them.
class FlowReceiver final : public FlowSink {
 public:
  FlowReceiver(Endpoint& endpoint, Control& control, const FlowPlan& plan);
  FlowCount receive(uint64_t count) override;

 private:
  bool take_completions(Time deadline);
  void take(const WorkCompletion& completion);
  bool take_word_of_sender();
  void end_skipped(uint64_t to);
  void end_open_records();
  void await_end();
  void await_stragglers();
  void give_credit_in_time();
  void give_credit();
  bool credit_is_due() const;

  Endpoint& endpoint_;
  Control& control_;
  const uint32_t window_;
  Poller poller_;
  FlowArrivals arrivals_;
  Duration patience_;
  Duration limit_;
  uint64_t credited_ = 0;
  uint64_t credits_ = 0;
  uint64_t credits_open_ = 0;
};

}  // namespace diwarp::tools
