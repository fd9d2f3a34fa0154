// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/flow_loop.h"
#include "common/group.h"

namespace diwarp::tools {

enum class RowEnd : uint8_t { client, server };
constexpr const char* to_string(RowEnd end) { return end == RowEnd::client ? "client" : "server"; }

/// The flows of a row between a client and a server: `streams` that the client posts, each over a
/// queue pair of its own, and if it is bidirectional as many that the server posts.
struct RowFlows {
  FlowPlan flow = {};
  uint32_t streams = 1;
  bool bidirectional = false;

  uint32_t count() const { return bidirectional ? 2 * streams : streams; }
  /// Those of the client come first.
  RowEnd source_of(uint32_t flow) const { return flow < streams ? RowEnd::client : RowEnd::server; }
};

/// Entries of the completion queue that an end needs for the flows of a row.
uint32_t completion_entries(const RowFlows& flows, RowEnd end);

/// What came of the messages of all flows that one end posted, at one receiver.
struct FlowOutcome {
  uint64_t received = 0;
  uint64_t partial = 0;
  GapCount gaps;
  uint64_t valid_bytes = 0;
  uint64_t wrong = 0;
  std::string first_wrong;
  uint64_t write_offs = 0;
  uint64_t nanoseconds = 0;  ///< from the first post to when the last was known to be there
};

/// As the server tells it to the client. Throws Failure if it is none.
Json to_json(const FlowOutcome& outcome);
FlowOutcome outcome_in(const Json& message);

/// One end of all flows of a row, with one peer or with the receivers of a group.
class FlowSet {
 public:
  FlowSet(Device& device, CompletionQueue& cq, const RowFlows& flows, RowEnd end,
          const Peers& peers, const std::optional<Group>& joined = std::nullopt);

  /// Brings the queue pairs of both ends together; `row` is the message that a row begins with.
  void pair_as_client(const Json& row, const std::optional<Group>& group, uint64_t token);
  void pair_as_server(const Device& device, const Json& row, uint64_t token);

  /// From then on the loop runs these flows. It must not outlive them.
  void join(FlowLoop& loop);
  /// The next `count` messages each way, spread over the streams.
  void begin(uint64_t count);
  /// Of these messages, by this end.
  uint64_t posted() const;
  /// Of what this end posted, at each receiver.
  std::vector<FlowOutcome> outcomes() const;
  /// Ends the connections.
  void part();

 private:
  struct Flow {
    Flow(Device& device, const EndpointShape& shape, CompletionQueue& cq)
        : endpoint(device, shape, cq) {}
    Endpoint endpoint;
    std::unique_ptr<FlowSource> source;  // one of the two
    std::unique_ptr<FlowSink> sink;
    FlowParty& party() { return source ? static_cast<FlowParty&>(*source) : *sink; }
  };

  void add_outcome(FlowOutcome& sum, const Json& result) const;

  RowFlows flows_;
  Peers peers_;
  std::deque<Flow> all_;
};

}  // namespace diwarp::tools
