// SPDX-License-Identifier: Apache-2.0
// diwarp-bandwidth: how many messages get from one process to another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <deque>
#include <vector>

#include "common/cost.h"
#include "common/failure.h"
#include "common/flow_set.h"
#include "common/measure.h"
#include "common/program.h"
#include "common/progress_line.h"
#include "common/report.h"
#include "common/session.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-bandwidth";
constexpr const char* kDescription =
    "Measures how many bytes and messages get from the client to the server, both polling. The "
    "server counts: MB/s are 10^6 bytes a second that arrived: of Sends in whole messages, of "
    "Write-Records, and of Reads over UD, all valid bytes. \"lost\" did not come whole; \"valid "
    "%\" is the share of the bytes that arrived. \"overflow\" is what the kernel dropped for "
    "want of receive buffer, \"cpu s\" the processor time of the client's process and of the "
    "server's. With --receivers each of the group has a row, and the slowest sets the pace. "
    "read gets the bytes from the server instead; its operations and those of atomic are "
    "counted by the client.";

const std::vector<Column> kColumns = {{"/size", "bytes", 10},
                                      {"/iterations", "messages", 9},
                                      {"/window", "window", 7},
                                      {"/mb_per_s", "MB/s", 9, 1},
                                      {"/messages_per_s", "messages/s", 11, 0},
                                      {"/lost", "lost", 7},
                                      {"/valid_percent", "valid %", 8, 2},
                                      {"/overflowed", "overflow", 9},
                                      {processor_text, "cpu s", 10}};

/// "ud write-record, completion last-segment, 4 streams".
std::string caption_of(const Json& row) {
  std::string caption = row.value("transport", "") + " " + row.value("op", "");
  if (row.value("op", "") == "write-record")
    caption += ", completion " + row.value("completion", "");
  if (row.value("streams", uint64_t{1}) > 1) caption += ", " + row["streams"].dump() + " streams";
  return caption;
}

/// Where rows are of more than sizes, what they are of is in the place of what is alike in all.
std::vector<Column> columns_of(const Ends& ends, const Measure& measure) {
  std::vector<Column> columns = kColumns;
  const auto name = [&](const char* pointer, const char* title, int width) {
    std::erase_if(columns, [](const Column& column) {
      return column.title == "window" || column.title == "overflow";
    });
    columns.insert(columns.begin(), {pointer, title, width});
  };
  if (measure.group) name("/receiver", "receiver", 16);
  if (ends.clients > 1) name("/client", "client", 7);
  if (measure.bidirectional || ends.role == Role::server) name("/posted_by", "from", 7);
  return columns;
}

constexpr uint64_t kMaxCount = 2'000'000'000;

/// About a second for small messages, at least a few windows of large ones.
uint64_t default_iterations(uint64_t size) {
  constexpr uint64_t kBytes = uint64_t{1} << 29;
  return std::clamp<uint64_t>(kBytes / std::max<uint64_t>(size, 1), 10, 200'000);
}

/// The number in a message of one byte tells no more than this many apart.
constexpr uint32_t kMaxWindowOfBytes = 64;

/// A full completion queue holds up, and loses nothing.
constexpr uint64_t kMostEntries = 65'536;

struct Row {
  RowFlows flows;
  uint64_t iterations = 0;
  uint64_t warmup = 0;
};

/// One that carries its number beside its bytes may be of any size.
bool is_told_by_bytes(Operation operation) { return operation != Operation::write_record; }

/// Of all of them together.
uint64_t rate_of_stream(uint64_t rate, uint32_t streams) {
  return rate == 0 ? 0 : std::max<uint64_t>(rate / streams, 1);
}

Row plan(const Measure& measure, uint64_t size, uint64_t receive_buffer, uint32_t receivers) {
  FlowPlan flow = {.transport = measure.transport,
                   .operation = measure.operation,
                   .size = size,
                   .window = measure.window.value_or(
                       default_window(measure.transport, measure.operation, size, receive_buffer)),
                   .rate = rate_of_stream(measure.rate, measure.streams),
                   .verify = measure.verify,
                   .segment = parse_segment(measure.segment),
                   .congestion = measure.congestion,
                   .transmissions = measure.transmissions,
                   .receivers = receivers,
                   .completion = measure.completion};
  if (size == 1 && is_told_by_bytes(measure.operation))
    flow.window = std::min(flow.window, kMaxWindowOfBytes);
  Row row = {.flows = {flow, measure.streams, measure.bidirectional}};
  check_plan(flow, row.flows.count());
  const uint64_t iterations = std::max<uint64_t>(default_iterations(size), measure.streams);
  row.iterations = measure.iterations.value_or(iterations);
  row.warmup = measure.warmup.value_or(std::min<uint64_t>(row.iterations / 10, 10'000));
  return row;
}

Json announcement(const Row& row) {
  const FlowPlan& flow = row.flows.flow;
  return {{"type", "row"},
          {"size", flow.size},
          {"window", flow.window},
          {"rate", flow.rate},
          {"iterations", row.iterations},
          {"warmup", row.warmup}};
}

Row read_announcement(const Json& message, const Terms& terms) {
  const FlowPlan flow = {.transport = terms.transport,
                         .operation = terms.operation,
                         .size = number_in(message, "size", 0, kMaxMessage),
                         .window = static_cast<uint32_t>(number_in(message, "window", 1, 4096)),
                         .rate = number_in(message, "rate", 0, UINT64_MAX),
                         .verify = terms.verify,
                         .segment = parse_segment(terms.segment),
                         .congestion = terms.congestion,
                         .completion = terms.completion};
  Row row = {.flows = {flow, terms.streams, terms.bidirectional}};
  check_size(flow.operation, flow.size);
  check_plan(flow, row.flows.count());
  row.iterations = number_in(message, "iterations", 0, kMaxCount);
  row.warmup = number_in(message, "warmup", 0, kMaxCount);
  return row;
}

/// What the measured part of a row cost each end.
struct Costs {
  Cost client;
  Cost server;
};

/// Where the messages that `from` posts arrive: of what it asks for, at itself.
const Cost& cost_of_arrival(const Costs& costs, RowEnd from, Operation operation) {
  const bool asks = info_of(operation).manner == Manner::requests;
  return (from == RowEnd::client) == asks ? costs.client : costs.server;
}

const Cost& cost_of_posting(const Costs& costs, RowEnd from) {
  return from == RowEnd::client ? costs.client : costs.server;
}

/// Whether the ends of a row see which bytes of a message are missing: of Sends none come in part,
/// and segments that complete by themselves tell of what came.
bool tells_gaps(const FlowPlan& flow) {
  if (flow.transport != QpType::ud) return false;
  if (flow.operation == Operation::read) return true;
  return flow.operation == Operation::write_record &&
         flow.completion != RecordCompletion::per_segment;
}

/// Of the messages of which a part came; means where there are any.
Json gaps_of(const FlowOutcome& outcome) {
  const GapCount& gaps = outcome.gaps;
  Json told = {{"count", gaps.count}, {"largest_bytes", gaps.largest}};
  if (gaps.count == 0 || outcome.partial == 0) return told;
  told["mean_bytes"] = static_cast<double>(gaps.bytes) / static_cast<double>(gaps.count);
  told["per_partial"] = static_cast<double>(gaps.count) / static_cast<double>(outcome.partial);
  return told;
}

Json figures(const Row& row, const Measure& measure, const FlowOutcome& outcome, RowEnd from,
             const Costs& costs) {
  const FlowPlan& flow = row.flows.flow;
  const uint64_t lost = row.iterations - std::min(outcome.received, row.iterations);
  const auto messages = static_cast<double>(row.iterations);
  const auto sent_bytes = static_cast<double>(row.iterations * flow.size);
  const double share = sent_bytes == 0 ? static_cast<double>(outcome.received) / messages
                                       : static_cast<double>(outcome.valid_bytes) / sent_bytes;
  const double seconds = static_cast<double>(outcome.nanoseconds) / 1e9;
  const double per_second = seconds > 0 ? 1 / seconds : 0;
  return {{"transport", to_string(flow.transport)},
          {"segment", measure.segment},
          {"op", info_of(flow.operation).name},
          {"completion", to_string(flow.completion)},
          {"posted_by", to_string(from)},
          {"streams", row.flows.streams},
          {"size", flow.size},
          {"iterations", row.iterations},
          {"warmup", row.warmup},
          {"window", flow.window},
          {"rate", measure.rate},
          {"verify", flow.verify},
          {"seconds", seconds},
          {"mb_per_s", static_cast<double>(outcome.valid_bytes) * per_second / 1e6},
          {"messages_per_s", static_cast<double>(outcome.received) * per_second},
          {"sent", row.iterations},
          {"received", outcome.received},
          {"valid_bytes", outcome.valid_bytes},
          {"lost", lost},
          {"partial", outcome.partial},
          {"valid_percent", 100 * share},
          {"loss_percent", 100 * static_cast<double>(lost) / messages},
          {"overflowed", cost_of_arrival(costs, from, flow.operation).overflowed},
          {"wrong", outcome.wrong},
          {"write_offs", outcome.write_offs},
          {"zerocopy_sends", cost_of_posting(costs, from).zerocopy_sends},
          {"processor", processor_times(costs.client, costs.server)}};
}

/// All processes of a host have this clock.
double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

class Client {
 public:
  Client(const Measure& measure, const Terms& terms, Verdict& verdict)
      : measure_(measure), terms_(terms), verdict_(verdict) {}

  /// The rows of each receiver, or of each way.
  std::vector<Json> run_row(Device& device, const Peers& peers, uint64_t size) {
    const auto receivers = static_cast<uint32_t>(peers.size());
    const Row row = plan(measure_, size, terms_.receive_buffer, receivers);
    CompletionQueue cq(device, completion_entries(row.flows, RowEnd::client));
    FlowSet flows(device, cq, row.flows, RowEnd::client, peers);
    flows.pair_as_client(announcement(row), measure_.group, terms_.token);
    FlowLoop loop(cq);
    flows.join(loop);
    const Cost cost = measure(row, device, peers, flows, loop);
    ended_ = monotonic_seconds();
    std::vector<Json> all;
    for (size_t i = 0; i < peers.size(); ++i) {
      const Json spent = peers[i].expect("spent");
      const std::vector<Json> rows =
          rows_of(row, flows.outcomes()[i], spent, {cost, cost_in(spent)}, peers[i]);
      peers[i].send({{"type", "done"}, {"rows", rows}});
      all.insert(all.end(), rows.begin(), rows.end());
    }
    flows.part();
    return all;
  }

 private:
  static Cost measure(const Row& row, const Device& device, const Peers& peers, FlowSet& flows,
                      FlowLoop& loop) {
    run(row.warmup, peers, flows, loop, {});
    const uint64_t ways = row.flows.bidirectional ? 2 : 1;
    const uint64_t size = row.flows.flow.size;
    ProgressLine progress(std::to_string(size) + " bytes", row.iterations, ways * size, device);
    const Meter meter(device);
    run(row.iterations, peers, flows, loop, [&] { progress.update(flows.posted()); });
    return meter.cost();
  }

  /// Messages may come as soon as this end says that it has begun. The servers say when it may
  /// post: all clients of one begin together.
  static void run(uint64_t count, const Peers& peers, FlowSet& flows, FlowLoop& loop,
                  const std::function<void()>& between) {
    flows.begin(count);
    peers.send({{"type", "begun"}});
    for (Control& control : peers) control.expect("go");
    loop.run(between);
  }

  std::vector<Json> rows_of(const Row& row, const FlowOutcome& ours, const Json& spent,
                            const Costs& costs, const Control& peer) {
    std::vector<Json> rows = {row_of(row, ours, RowEnd::client, costs)};
    if (measure_.group) rows.front()["receiver"] = peer.peer_address().host();
    if (row.flows.bidirectional)
      rows.push_back(row_of(row, outcome_in(spent), RowEnd::server, costs));
    return rows;
  }

  Json row_of(const Row& row, const FlowOutcome& outcome, RowEnd from, const Costs& costs) {
    Json done = figures(row, measure_, outcome, from, costs);
    done["ended_s"] = ended_;
    if (row.flows.flow.transport == QpType::rd)
      done["congestion"] = to_string(row.flows.flow.congestion);
    if (tells_gaps(row.flows.flow)) done["gaps"] = gaps_of(outcome);
    if (terms_.clients > 1) done["client"] = std::to_string(terms_.client + 1);
    if (outcome.wrong != 0) verdict_.fail(outcome.first_wrong);
    verdict_.check_loss(done["lost"], row.iterations, row.flows.flow.size, measure_.max_loss);
    return done;
  }

  const Measure& measure_;
  const Terms& terms_;
  Verdict& verdict_;
  double ended_ = 0;  // of the latest row
};

/// One row of one client, at the server.
struct Guest {
  Guest(Device& device, CompletionQueue& cq, const Row& row, Control& control, const Json& message)
      : row(row),
        control(control),
        flows(device, cq, row.flows, RowEnd::server, control, group_in(message)) {}

  Row row;
  Control& control;
  FlowSet flows;
};

/// The server's own row beside those of its clients: the messages of one way all together.
Json row_of_server(const std::vector<Json>& rows, RowEnd from, const Cost& cost) {
  Json sum;
  double seconds = 0;
  for (const Json& row : rows) {
    if (text_in(row, "posted_by") != to_string(from)) continue;
    if (sum.is_null()) sum = {{"client", "all"}};
    for (const char* name : {"iterations", "sent", "received", "valid_bytes", "lost", "partial",
                             "wrong", "write_offs"}) {
      const uint64_t before = sum.value(name, uint64_t{0});
      sum[name] = before + number_in(row, name, 0, UINT64_MAX - before);
    }
    seconds = std::max(seconds, positive_in(row, "seconds"));
  }
  const double per_second = seconds > 0 ? 1 / seconds : 0;
  sum["seconds"] = seconds;
  sum["mb_per_s"] = sum["valid_bytes"].get<double>() * per_second / 1e6;
  sum["messages_per_s"] = sum["received"].get<double>() * per_second;
  sum["loss_percent"] = 100 * sum["lost"].get<double>() / sum["sent"].get<double>();
  sum["processor"] = processor_times(cost);
  // What is alike in all, and the names of the rest, are those of the first client.
  Json row = rows.front();
  row.update(sum);
  row["posted_by"] = to_string(from);
  row.erase("valid_percent");
  row.erase("gaps");
  row.erase("ended_s");
  return row;
}

/// The rows of all clients, and where there are several those of the server.
std::vector<Json> collect_rows(std::deque<Guest>& guests, const Cost& cost) {
  std::vector<Json> all;
  for (Guest& guest : guests) {
    const std::vector<Json> rows = rows_in(guest.control.expect("done"));
    all.insert(all.end(), rows.begin(), rows.end());
  }
  if (guests.size() == 1) return all;
  const std::vector<Json> rows = all;
  all.push_back(row_of_server(rows, RowEnd::client, cost));
  const bool both =
      std::ranges::any_of(guests, [](const Guest& guest) { return guest.row.flows.bidirectional; });
  if (both) all.push_back(row_of_server(rows, RowEnd::server, cost));
  return all;
}

/// The next messages of all clients at the same time.
void serve_messages(const Peers& peers, std::deque<Guest>& guests, FlowLoop& loop,
                    uint64_t Row::*count) {
  for (Guest& guest : guests) {
    guest.control.expect("begun");
    guest.flows.begin(guest.row.*count);
  }
  peers.send({{"type", "go"}});
  loop.run();
}

std::vector<Json> serve_row(Device& device, const Peers& peers, const std::vector<Terms>& terms) {
  std::vector<Json> messages;
  std::vector<Row> rows;
  uint64_t entries = 0;
  for (size_t i = 0; i < peers.size(); ++i) {
    messages.push_back(peers[i].expect("row"));
    rows.push_back(read_announcement(messages[i], terms[i]));
    entries += completion_entries(rows[i].flows, RowEnd::server);
  }
  CompletionQueue cq(device, static_cast<uint32_t>(std::min(entries, kMostEntries)));
  std::deque<Guest> guests;
  FlowLoop loop(cq);
  for (size_t i = 0; i < peers.size(); ++i) {
    Guest& guest = guests.emplace_back(device, cq, rows[i], peers[i], messages[i]);
    guest.flows.pair_as_server(device, messages[i], terms[i].token);
    guest.flows.join(loop);
  }
  serve_messages(peers, guests, loop, &Row::warmup);
  const Meter meter(device);
  serve_messages(peers, guests, loop, &Row::iterations);
  const Cost cost = meter.cost();
  for (Guest& guest : guests) {
    Json spent = guest.row.flows.bidirectional ? to_json(guest.flows.outcomes().front()) : Json();
    spent.update(to_json(cost));
    spent["type"] = "spent";
    guest.control.send(spent);
  }
  const std::vector<Json> all = collect_rows(guests, cost);
  for (Guest& guest : guests) guest.flows.part();
  return all;
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  MeasureOptions options(app, "64K", "1");
  options.add_flow_options(app);
  if (!parse_command_line(app, argc, argv)) return;
  const Ends ends = options.ends();
  const Measure measure = options.measure();
  Verdict verdict;
  run_measurement(kName, ends, measure, caption_of, columns_of(ends, measure), verdict,
                  {.client =
                       [&](Device& device, Peers peers, const Terms& terms, uint64_t size) {
                         return Client(measure, terms, verdict).run_row(device, peers, size);
                       },
                   .server = serve_row});
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
