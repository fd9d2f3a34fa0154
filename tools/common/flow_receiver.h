// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/endpoint.h"
#include "common/flow.h"
#include "common/flow_arrivals.h"

namespace diwarp::tools {

/// Takes messages and gives credits for them.
class FlowReceiver final : public FlowSink {
 public:
  FlowReceiver(Endpoint& endpoint, Control& control, const FlowPlan& plan, uint32_t flow = 0);

  void begin(uint64_t count, Time now) override;
  bool done() const override { return stage_ == Stage::done; }
  void work(Time now) override;
  bool sees_arrival() override { return arrivals_.next_is_written(); }
  void take(const WorkCompletion& completion, Time now) override;
  void hear(size_t peer, const Json& word, Time now) override;
  Time deadline() const override;
  void expire(Time now) override;
  FlowCount count() const override { return arrivals_.count(); }

 private:
  enum class Stage : uint8_t {
    receiving,
    ending,      ///< the sender wrote off what is on the way; records of it may be open
    straggling,  ///< it says that it sent all; some may be on the way, or lost
    done,
  };

  void note_arrival(Time now);
  void begin_skip(const Json& word, Time now);
  void look_for_open_records(Time now);
  void end_skip(Time now);
  void straggle();
  void give_credit_in_time();
  void give_credit();
  bool credit_is_due() const;

  Endpoint& endpoint_;
  Control& control_;
  const uint32_t window_;
  uint32_t flow_;
  FlowArrivals arrivals_;
  Duration patience_;
  Duration limit_;
  Stage stage_ = Stage::done;
  Time since_{};  // the last arrival, or look at the silence
  Time heard_{};  // the last arrival, or word
  uint64_t skipped_to_ = 0;
  int quiet_ = 0;  // in Stage::ending: polls in a row that brought nothing
  uint64_t credited_ = 0;
  uint64_t credits_ = 0;
  uint64_t credits_open_ = 0;
};

}  // namespace diwarp::tools
