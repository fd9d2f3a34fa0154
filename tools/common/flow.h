// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/endpoint.h"
#include "common/gaps.h"

namespace diwarp::tools {

// A flow of equal messages one way, numbered from 0: Sends, Immediate Data, Write-Records, or
// Writes into slots of the receiver's memory, which sees them there. The receiver answers with
// small messages, credits, that tell the number it expects next; the sender keeps at most a window
// of messages before that. So a receiver over UD is not overrun, and one over RC has always a
// receive posted. Over UD messages and credits get lost: a sender that has been out of window for
// too long counts all that is on the way as arrived or lost (it writes them off), and tells the
// receiver so. It goes on, and writes their slots again, when the receiver has confirmed that: then
// the bytes of them that had come are verified, and nothing of them can come any more.
//
// Each end of a flow is a FlowParty. Several flows, of one peer or of many, go at the same time: a
// FlowLoop (common/flow_loop.h) brings each of them what came for it. What the two parties of a
// flow say to each other in the control channel names it by its number among the flows of these
// ends.

/// The parameters of a flow that both ends know.
struct FlowPlan {
  QpType transport = QpType::ud;
  Operation operation = Operation::send;
  uint64_t size = 0;
  uint32_t window = 1;
  uint64_t rate = 0;  ///< bytes a second; 0: no limit
  bool verify = false;
  SegmentChoice segment = {};
  CongestionControl congestion = CongestionControl::bbr;  ///< rd
  std::string transmissions = {};  ///< rd: the file for those of this end; empty: none
  bool crc = true;                 ///< rc
  uint32_t receivers = 1;          ///< more: of a group, which all get the same messages
  RecordCompletion completion = RecordCompletion::complete;  ///< of Write-Records
};

/// A window for messages of this size: over UD what a receive buffer of so many bytes holds, over
/// the others what keeps both ends busy.
uint32_t default_window(QpType transport, Operation operation, uint64_t size,
                        uint64_t receive_buffer);

/// Throws Failure if the ends of so many flows would need more memory than is sensible.
void check_plan(const FlowPlan& plan, uint32_t flows = 1);

EndpointShape sender_shape(const FlowPlan& plan);
EndpointShape receiver_shape(const FlowPlan& plan);

/// One end of a flow. It does what it can at once, and never waits. The times are those of the
/// calls.
class FlowParty {
 public:
  virtual ~FlowParty() = default;

  /// The next `count` messages are to go.
  virtual void begin(uint64_t count, Time now) = 0;
  /// They have gone, or are lost.
  virtual bool done() const = 0;

  /// Posts what may be posted, and takes what no completion tells of.
  virtual void work(Time now) = 0;
  /// Whether there is something of the latter kind. Asked between two polls.
  virtual bool sees_arrival() { return false; }
  /// A completion of this end's queue pair.
  virtual void take(const WorkCompletion& completion, Time now) = 0;
  /// What a peer, of a group the one with this index, says about the flow.
  virtual void hear(size_t peer, const Json& word, Time now) = 0;

  /// When silence means something: then expire() is called.
  virtual Time deadline() const = 0;
  virtual void expire(Time now) = 0;
  /// False if its work does not show in the completion queue.
  virtual bool may_rest() const { return true; }
};

/// The end of a flow that posts it; of one-sided requests, too (common/requests.h).
class FlowSource : public FlowParty {
 public:
  /// Of the messages since begin().
  virtual uint64_t posted() const = 0;
  /// The "result" about them of each receiver, once they are done.
  const std::vector<Json>& results() const { return results_; }
  /// From the first post to when the last was known to be there.
  Time started() const { return started_; }
  Time ended() const { return ended_; }
  /// How often a full window was given up.
  uint64_t write_offs() const { return write_offs_; }

 protected:
  std::vector<Json> results_;
  Time started_{};
  Time ended_{};
  uint64_t write_offs_ = 0;
};

/// The view of the other end on the messages since begin().
struct FlowCount {
  uint64_t received = 0;
  uint64_t partial = 0;      ///< Write-Records and Reads of which some bytes came, and not all
  GapCount gaps;             ///< of those, unless segments complete by themselves
  uint64_t valid_bytes = 0;  ///< of messages that came and, if verified, once and as written
  uint64_t wrong = 0;        ///< the others
  std::string first_wrong;   ///< says what was wrong with the first of them
  uint64_t next = 0;         ///< the number that was expected next, as the last credit told it
};

/// The "result" that the receiver tells the sender.
Json to_json(const FlowCount& count);

/// The other end: done when the sender says that it sent all, and all came or, over UD, nothing has
/// come for a while.
class FlowSink : public FlowParty {
 public:
  virtual FlowCount count() const = 0;
};

/// For endpoints of the plan's shapes, before they are paired.
std::unique_ptr<FlowSource> make_flow_source(Endpoint& endpoint, const Peers& peers,
                                             const FlowPlan& plan, uint32_t flow = 0);
std::unique_ptr<FlowSink> make_flow_sink(Endpoint& endpoint, Control& control, const FlowPlan& plan,
                                         uint32_t flow = 0);

}  // namespace diwarp::tools
