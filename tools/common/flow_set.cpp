// SPDX-License-Identifier: Apache-2.0
#include "common/flow_set.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/pairing.h"

namespace diwarp::tools {
namespace {

using std::chrono::steady_clock;

/// A full completion queue holds up, and loses nothing.
constexpr uint64_t kMostEntries = 65'536;

/// Fewer bytes than any segment of the path has where Write-Records complete in segments.
constexpr uint64_t kShortSegment = 1024;

EndpointShape shape_of(const RowFlows& flows, uint32_t flow, RowEnd end) {
  return flows.source_of(flow) == end ? sender_shape(flows.flow) : receiver_shape(flows.flow);
}

/// The share of one of the streams.
uint64_t share_of(uint64_t count, uint32_t streams, uint32_t stream) {
  return count / streams + (stream < count % streams ? 1 : 0);
}

}  // namespace

uint32_t completion_entries(const RowFlows& flows, RowEnd end) {
  uint64_t entries = 0;
  const bool in_segments = flows.flow.completion == RecordCompletion::per_segment;
  const uint64_t segments = in_segments ? flows.flow.size / kShortSegment + 1 : 1;
  for (uint32_t flow = 0; flow < flows.count(); ++flow)
    entries += shape_of(flows, flow, end).completions() * segments;
  return static_cast<uint32_t>(std::min(entries, kMostEntries));
}

Json to_json(const FlowOutcome& outcome) {
  return {{"received", outcome.received},       {"partial", outcome.partial},
          {"valid_bytes", outcome.valid_bytes}, {"wrong", outcome.wrong},
          {"first_wrong", outcome.first_wrong}, {"write_offs", outcome.write_offs},
          {"nanoseconds", outcome.nanoseconds}, {"gaps", to_json(outcome.gaps)}};
}

FlowOutcome outcome_in(const Json& message) {
  const auto number = [&](const char* name) { return number_in(message, name, 0, UINT64_MAX); };
  return {.received = number("received"),
          .partial = number("partial"),
          .gaps = gaps_in(message),
          .valid_bytes = number("valid_bytes"),
          .wrong = number("wrong"),
          .first_wrong = text_in(message, "first_wrong"),
          .write_offs = number("write_offs"),
          .nanoseconds = number("nanoseconds")};
}

FlowSet::FlowSet(Device& device, CompletionQueue& cq, const RowFlows& flows, RowEnd end,
                 const Peers& peers, const std::optional<Group>& joined)
    : flows_(flows), peers_(peers) {
  for (uint32_t number = 0; number < flows.count(); ++number) {
    EndpointShape shape = shape_of(flows, number, end);
    shape.group = joined;
    if (number != 0) shape.transmissions.clear();
    Flow& flow = all_.emplace_back(device, shape, cq);
    if (flows.source_of(number) == end)
      flow.source = make_flow_source(flow.endpoint, peers, flows.flow, number);
    else
      flow.sink = make_flow_sink(flow.endpoint, peers, flows.flow, number);
    flow.endpoint.post_receives();
  }
}

void FlowSet::pair_as_client(const Json& row, const std::optional<Group>& group, uint64_t token) {
  const Json more = {{"type", "pair"}};
  for (Flow& flow : all_)
    pair_with_servers(flow.endpoint, peers_, &flow == &all_.front() ? row : more, group, token);
}

void FlowSet::pair_as_server(const Device& device, const Json& row, uint64_t token) {
  for (Flow& flow : all_) {
    const Json& message = &flow == &all_.front() ? row : peers_.front().expect("pair");
    tools::pair_as_server(flow.endpoint, device, peers_, message, token);
  }
}

void FlowSet::join(FlowLoop& loop) {
  for (uint32_t number = 0; number < all_.size(); ++number) {
    Flow& flow = all_[number];
    const auto tell_result = [this, &flow, number] {
      if (!flow.sink) return;
      Json result = to_json(flow.sink->count());
      result["flow"] = number;
      peers_.send(result);
    };
    loop.add(flow.party(), flow.endpoint, peers_, number, tell_result);
  }
}

void FlowSet::begin(uint64_t count) {
  const Time now = steady_clock::now();
  for (uint32_t number = 0; number < all_.size(); ++number)
    all_[number].party().begin(share_of(count, flows_.streams, number % flows_.streams), now);
}

uint64_t FlowSet::posted() const {
  uint64_t sum = 0;
  for (const Flow& flow : all_)
    if (flow.source) sum += flow.source->posted();
  return sum;
}

void FlowSet::add_outcome(FlowOutcome& sum, const Json& result) const {
  const auto number = [&](const char* name) { return number_in(result, name, 0, UINT64_MAX); };
  sum.received += number("received");
  sum.partial += number("partial");
  sum.gaps.add(gaps_in(result));
  sum.valid_bytes += number("valid_bytes");
  if (sum.wrong == 0) sum.first_wrong = text_in(result, "first_wrong");
  sum.wrong += number("wrong");
}

std::vector<FlowOutcome> FlowSet::outcomes() const {
  std::vector<FlowOutcome> sums(peers_.size());
  uint64_t write_offs = 0;
  Time first = Time::max(), last = Time::min();
  for (const Flow& flow : all_) {
    if (!flow.source) continue;
    for (size_t i = 0; i < sums.size(); ++i) add_outcome(sums[i], flow.source->results()[i]);
    write_offs += flow.source->write_offs();
    first = std::min(first, flow.source->started());
    last = std::max(last, flow.source->ended());
  }
  for (FlowOutcome& sum : sums) {
    sum.write_offs = write_offs;
    if (last > first) sum.nanoseconds = static_cast<uint64_t>(Duration(last - first).count());
  }
  return sums;
}

void FlowSet::part() {
  for (Flow& flow : all_) tools::part(flow.endpoint);
}

}  // namespace diwarp::tools
