// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/endpoint.h"
#include "common/poller.h"

namespace diwarp::tools {

// A flow of equal messages one way, numbered from 0: Sends, Immediate Data, Write-Records, or
// Writes into slots of the receiver's memory, which sees them there. The receiver answers with
// small messages, credits, that tell the number it expects next; the sender keeps at most a window
// of messages before that. So a receiver over UD is not overrun, and one over RC has always a
// receive posted. Over UD messages and credits get lost: a sender that has been out of window for
// too long counts all that is on the way as arrived or lost (it writes them off), and tells the
// receiver so. It goes on, and writes their slots again, when the receiver has confirmed that: then
// the bytes of them that had come are verified, and nothing of them can come any more.

/// The parameters of a flow that both ends know.
struct FlowPlan {
  QpType transport = QpType::ud;
  Operation operation = Operation::send;
  uint64_t size = 0;
  uint32_t window = 1;
  uint64_t rate = 0;  ///< bytes a second; 0: no limit
  bool verify = false;
  SegmentChoice segment = {};
  bool crc = true;         ///< rc
  uint32_t receivers = 1;  ///< more: of a group, which all get the same messages
};

/// A window for messages of this size: over UD what a receive buffer of so many bytes holds, over
/// the others what keeps both ends busy.
uint32_t default_window(QpType transport, Operation operation, uint64_t size,
                        uint64_t receive_buffer);

/// Throws Failure if the ends would need more memory than is sensible.
void check_plan(const FlowPlan& plan);

EndpointShape sender_shape(const FlowPlan& plan);
EndpointShape receiver_shape(const FlowPlan& plan);

/// The end of a flow that posts it; of one-sided requests, too (common/requests.h).
class FlowSource {
 public:
  virtual ~FlowSource() = default;

  /// Called with how many messages have been posted.
  using Progress = std::function<void(uint64_t)>;

  /// Does the next `count` and returns the "result" about them of each receiver.
  virtual std::vector<Json> send(uint64_t count, const Progress& progress) = 0;

  /// Of the last send(): from its first post to when the last was known to be there.
  Duration elapsed() const { return elapsed_; }
  /// How often a full window was given up.
  uint64_t write_offs() const { return write_offs_; }

 protected:
  Duration elapsed_{};
  uint64_t write_offs_ = 0;
};

/// The view of the other end on one send().
struct FlowCount {
  uint64_t received = 0;
  uint64_t partial = 0;      ///< Write-Records and Reads of which some bytes came, and not all
  uint64_t valid_bytes = 0;  ///< of messages that came and, if verified, once and as written
  uint64_t wrong = 0;        ///< the others
  std::string first_wrong;   ///< says what was wrong with the first of them
  uint64_t next = 0;         ///< the number that was expected next, as the last credit told it
};

/// The "result" that the receiver tells the sender of one send().
Json to_json(const FlowCount& count, uint64_t overflowed);

/// The other end.
class FlowSink {
 public:
  virtual ~FlowSink() = default;

  /// Takes the next `count` messages: returns when the sender says that it sent them, and all came
  /// or, over UD, nothing has come for a while.
  virtual FlowCount receive(uint64_t count) = 0;
};

/// For endpoints of the plan's shapes, before they are paired.
std::unique_ptr<FlowSource> make_flow_source(Endpoint& endpoint, const Peers& peers,
                                             const FlowPlan& plan);
std::unique_ptr<FlowSink> make_flow_sink(Endpoint& endpoint, Control& control,
                                         const FlowPlan& plan);

/// Messages; the time of the last is that of the last credit that told of an arrival. The slowest
/// receiver sets the pace.
class FlowSender final : public FlowSource {
 public:
  FlowSender(Endpoint& endpoint, const Peers& peers, const FlowPlan& plan);
  std::vector<Json> send(uint64_t count, const Progress& progress) override;

 private:
  bool may_post() const;
  uint64_t credited() const;
  void post_all(uint64_t end);
  void prepare_next();
  void wait_for_room();
  bool take_completions(Time deadline);
  void take(const WorkCompletion& completion);
  void take_credit(const WorkCompletion& completion, size_t receiver);
  void write_off();
  void await_words(Time deadline);
  std::vector<Json> await_results(uint64_t count);
  void await_last_credits(const std::vector<Json>& results);

  Endpoint& endpoint_;
  Peers peers_;
  FlowPlan plan_;
  Poller poller_;
  Duration patience_;  // without any progress, before the window is given up
  Duration limit_;     // without any credit
  uint64_t posted_ = 0;
  uint64_t sent_ = 0;               // completed
  std::vector<uint64_t> credited_;  // of each receiver: numbers below have arrived or are lost
  Time start_{};
  Time last_credit_{};
};

}  // namespace diwarp::tools
