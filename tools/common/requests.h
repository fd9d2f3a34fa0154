// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/endpoint.h"
#include "common/flow.h"
#include "common/pingpong_ends.h"
#include "common/poller.h"

namespace diwarp::tools {

// One-sided operations, Reads and atomics: the near end asks for what lies in slots of the far
// end's memory, which knows nothing of it. Request n is of slot n modulo their number. A slot has
// always the same contents for Reads, and is a counter for atomics, which each add 1 to it.

/// `slots` requests may be on their way at once.
EndpointShape requester_shape(Operation operation, size_t size, uint32_t slots,
                              QpType transport = QpType::rc);
EndpointShape responder_shape(Operation operation, size_t size, uint32_t slots,
                              QpType transport = QpType::rc);

/// How many of them the connections of these tools carry at once (ORD, RFC 5040 section 6.5).
inline constexpr uint32_t kOutstandingRequests = ConnectOptions{}.ord;

/// Posts requests, and checks what comes back.
class Requester {
 public:
  struct Counts {
    uint64_t partial = 0;      ///< UD: Reads that ended with bytes missing
    uint64_t wrong = 0;        ///< brought something else than they should have
    uint64_t valid_bytes = 0;  ///< of those that are not wrong
  };

  Requester(Endpoint& endpoint, Control& control, bool verify);

  /// Over datagrams requests may complete in another order.
  bool has_room() const { return !under_way_[slot_of(posted_)]; }
  void post_next();
  /// False if nothing completed until the deadline, or the peer said something.
  bool take_completions(Time deadline);
  void take(const WorkCompletion& completion);

  uint64_t posted() const { return posted_; }
  uint64_t done() const { return done_; }
  /// Of those that are done.
  const Counts& counts() const { return counts_; }
  /// Of the Reads since the last call.
  GapCount take_gaps() { return std::exchange(gaps_, {}); }
  /// A message about the first that is wrong.
  const std::string& first_wrong() const { return first_wrong_; }
  void note_wrong(const std::string& message);

  /// For an answer. A deadline of its own keeps a connection that hangs from hanging the run.
  Duration limit() const { return limit_; }
  [[noreturn]] void fail_silence() const;

 private:
  void spoil(uint32_t slot);
  void verify(const WorkCompletion& completion);
  std::optional<size_t> fault_in(const WorkCompletion& completion);
  std::optional<size_t> fault_in_read(const WorkCompletion& completion);
  uint32_t slot_of(uint64_t number) const;

  Endpoint& endpoint_;
  Poller poller_;
  bool verify_;
  Duration limit_;
  std::vector<bool> under_way_;   // of each slot
  std::vector<uint64_t> number_;  // of the last request of each slot
  uint64_t posted_ = 0;
  uint64_t done_ = 0;
  Counts counts_;
  GapCount gaps_;
  std::string first_wrong_;
};

/// One request at a time.
class RequestPinger final : public NearEnd {
 public:
  RequestPinger(Endpoint& endpoint, Control& control, bool verify)
      : requester_(endpoint, control, verify), takes_partial_(endpoint.shape().takes_partial) {}
  std::optional<Duration> ping() override;

 private:
  Requester requester_;
  bool takes_partial_;
  uint64_t partial_ = 0;
};

/// As many at once as there are slots.
class RequestFlow final : public FlowSource {
 public:
  RequestFlow(Endpoint& endpoint, Control& control, const FlowPlan& plan, uint32_t flow = 0)
      : control_(control), plan_(plan), flow_(flow), requester_(endpoint, control, plan.verify) {}

  void begin(uint64_t count, Time now) override;
  bool done() const override { return stage_ == Stage::done; }
  void work(Time now) override;
  void take(const WorkCompletion& completion, Time now) override;
  void hear(size_t peer, const Json& word, Time now) override;
  Time deadline() const override;
  void expire(Time now) override;
  uint64_t posted() const override { return requester_.posted() - first_; }

 private:
  enum class Stage : uint8_t { asking, reporting, done };

  Json result(const Json& told);
  void check_counters(const Json& told);

  Control& control_;
  FlowPlan plan_;
  uint32_t flow_;
  Requester requester_;
  Stage stage_ = Stage::done;
  Time since_{};  // the last answer, or when the stage began
  uint64_t first_ = 0;
  uint64_t end_ = 0;
  Requester::Counts before_;
};

/// The end whose memory is used. It only progresses.
class Responder final : public FarEnd, public FlowSink {
 public:
  Responder(Endpoint& endpoint, Control& control);

  void run() override;

  void begin(uint64_t count, Time now) override;
  bool done() const override { return done_; }
  void work(Time) override {}
  void take(const WorkCompletion& completion, Time now) override;
  void hear(size_t peer, const Json& word, Time now) override;
  Time deadline() const override;
  void expire(Time now) override;
  /// A request shows nowhere, so this end would be taken for idle.
  bool may_rest() const override { return false; }
  /// Counts nothing: tells, for atomics, what the counters have come to together.
  FlowCount count() const override;

 private:
  Endpoint& endpoint_;
  Control& control_;
  bool done_ = true;
  Time since_{};  // the last look at the connection
};

}  // namespace diwarp::tools
