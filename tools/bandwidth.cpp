// SPDX-License-Identifier: Apache-2.0
// diwarp-bandwidth: how many messages get from one process to another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "common/failure.h"
#include "common/flow.h"
#include "common/measure.h"
#include "common/pairing.h"
#include "common/program.h"
#include "common/progress_line.h"
#include "common/report.h"
#include "common/requests.h"
#include "common/session.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-bandwidth";
constexpr const char* kDescription =
    "Measures how many bytes and messages get from the client to the server, both polling. The\n"
    "server counts: MB/s are 10^6 bytes a second that arrived: of Sends in whole messages, of\n"
    "Write-Records, and of Reads over UD, all valid bytes. \"lost\" did not come whole; \"valid "
    "%\" is\n"
    "the share of the bytes that arrived. \"overflow\" is what the kernel dropped for want of "
    "receive\n"
    "buffer. With --receivers each of the group has a row, and the slowest sets the pace. read "
    "gets the bytes from the server instead; its operations and those of atomic are\n"
    "counted by the client.";

const std::vector<Column> kColumns = {{"/transport", "transport", 9},
                                      {"/op", "op", 14},
                                      {"/size", "bytes", 11},
                                      {"/iterations", "iterations", 12},
                                      {"/window", "window", 8},
                                      {"/mb_per_s", "MB/s", 10, 1},
                                      {"/messages_per_s", "messages/s", 12, 0},
                                      {"/lost", "lost", 9},
                                      {"/loss_percent", "loss %", 8, 3},
                                      {"/valid_percent", "valid %", 9, 3},
                                      {"/overflowed", "overflow", 10}};

constexpr uint64_t kMaxCount = 2'000'000'000;

/// About a second for small messages, at least a few windows of large ones.
uint64_t default_iterations(uint64_t size) {
  constexpr uint64_t kBytes = uint64_t{1} << 29;
  return std::clamp<uint64_t>(kBytes / std::max<uint64_t>(size, 1), 10, 200'000);
}

/// The number in a message of one byte tells no more than this many apart.
constexpr uint32_t kMaxWindowOfBytes = 64;

struct Row {
  FlowPlan flow;
  uint64_t iterations = 0;
  uint64_t warmup = 0;
};

/// One that carries its number beside its bytes may be of any size.
bool is_told_by_bytes(Operation operation) { return operation != Operation::write_record; }

Row plan(const Measure& measure, uint64_t size, uint64_t receive_buffer, uint32_t receivers) {
  Row row;
  row.flow = {.transport = measure.transport,
              .operation = measure.operation,
              .size = size,
              .window = measure.window.value_or(
                  default_window(measure.transport, measure.operation, size, receive_buffer)),
              .rate = measure.rate,
              .verify = measure.verify,
              .segment = parse_segment(measure.segment),
              .receivers = receivers};
  if (size == 1 && is_told_by_bytes(measure.operation))
    row.flow.window = std::min(row.flow.window, kMaxWindowOfBytes);
  check_plan(row.flow);
  row.iterations = measure.iterations.value_or(default_iterations(size));
  row.warmup = measure.warmup.value_or(std::min<uint64_t>(row.iterations / 10, 10'000));
  return row;
}

Json announcement(const Row& row) {
  return {{"type", "row"},         {"size", row.flow.size},        {"window", row.flow.window},
          {"rate", row.flow.rate}, {"iterations", row.iterations}, {"warmup", row.warmup}};
}

Row read_announcement(const Json& message, const Terms& terms) {
  Row row;
  row.flow = {.transport = terms.transport,
              .operation = terms.operation,
              .size = number_in(message, "size", 0, kMaxMessage),
              .window = static_cast<uint32_t>(number_in(message, "window", 1, 4096)),
              .rate = number_in(message, "rate", 0, UINT64_MAX),
              .verify = terms.verify,
              .segment = parse_segment(terms.segment)};
  check_size(row.flow.operation, row.flow.size);
  check_plan(row.flow);
  row.iterations = number_in(message, "iterations", 0, kMaxCount);
  row.warmup = number_in(message, "warmup", 0, kMaxCount);
  return row;
}

Json figures(const Row& row, const Json& result, const FlowSource& source,
             const std::string& segment) {
  const uint64_t received = number_in(result, "received", 0, UINT64_MAX);
  const uint64_t valid_bytes = number_in(result, "valid_bytes", 0, UINT64_MAX);
  const uint64_t lost = row.iterations - std::min(received, row.iterations);
  const auto sent_bytes = static_cast<double>(row.iterations * row.flow.size);
  const double share = sent_bytes == 0
                           ? static_cast<double>(received) / static_cast<double>(row.iterations)
                           : static_cast<double>(valid_bytes) / sent_bytes;
  const double seconds = std::chrono::duration<double>(source.elapsed()).count();
  const double per_second = seconds > 0 ? 1 / seconds : 0;
  return {{"transport", to_string(row.flow.transport)},
          {"segment", segment},
          {"op", info_of(row.flow.operation).name},
          {"size", row.flow.size},
          {"iterations", row.iterations},
          {"warmup", row.warmup},
          {"window", row.flow.window},
          {"rate", row.flow.rate},
          {"verify", row.flow.verify},
          {"seconds", seconds},
          {"mb_per_s", static_cast<double>(valid_bytes) * per_second / 1e6},
          {"messages_per_s", static_cast<double>(received) * per_second},
          {"sent", row.iterations},
          {"received", received},
          {"valid_bytes", valid_bytes},
          {"lost", lost},
          {"partial", number_in(result, "partial", 0, UINT64_MAX)},
          {"valid_percent", 100 * share},
          {"loss_percent", 100 * static_cast<double>(lost) / static_cast<double>(row.iterations)},
          {"overflowed", number_in(result, "overflowed", 0, UINT64_MAX)},
          {"wrong", number_in(result, "wrong", 0, UINT64_MAX)},
          {"write_offs", source.write_offs()}};
}

class Client {
 public:
  Client(const Measure& measure, const Terms& terms, Verdict& verdict)
      : measure_(measure), terms_(terms), verdict_(verdict) {}

  /// The figures of each receiver.
  std::vector<Json> run_row(Device& device, const Peers& peers, uint64_t size) {
    const auto receivers = static_cast<uint32_t>(peers.size());
    const Row row = plan(measure_, size, terms_.receive_buffer, receivers);
    Endpoint endpoint(device, sender_shape(row.flow));
    const auto source = make_flow_source(endpoint, peers, row.flow);
    endpoint.post_receives();
    pair_with_servers(endpoint, peers, announcement(row), measure_.group, terms_.token);
    const uint64_t zero_copy = device.counter("rc_zerocopy_sends");
    const std::vector<Json> results = send(*source, row, device);
    std::vector<Json> rows;
    for (size_t i = 0; i < results.size(); ++i) {
      Json done = figures(row, results[i], *source, measure_.segment);
      done["zerocopy_sends"] = device.counter("rc_zerocopy_sends") - zero_copy;
      if (measure_.group) done["receiver"] = peers[i].peer_address().host();
      peers[i].send({{"type", "done"}, {"row", done}});
      check(row, results[i], done);
      rows.push_back(std::move(done));
    }
    part(endpoint);
    return rows;
  }

 private:
  static std::vector<Json> send(FlowSource& source, const Row& row, const Device& device) {
    ProgressLine progress(std::to_string(row.flow.size) + " bytes", row.iterations);
    source.send(row.warmup, [](uint64_t) {});
    const uint64_t overflowed = device.counter("rx_overflow");
    auto results = source.send(row.iterations, [&](uint64_t posted) { progress.update(posted); });
    // The bytes that are asked for arrive at this end.
    if (info_of(row.flow.operation).manner == Manner::requests)
      results.front()["overflowed"] = device.counter("rx_overflow") - overflowed;
    return results;
  }

  void check(const Row& row, const Json& result, const Json& done) {
    if (done["wrong"] != 0) verdict_.fail(text_in(result, "first_wrong"));
    verdict_.check_loss(done["lost"], row.iterations, row.flow.size, measure_.max_loss);
  }

  const Measure& measure_;
  const Terms& terms_;
  Verdict& verdict_;
};

Json serve_row(Device& device, Control& control, const Terms& terms) {
  const Json message = control.expect("row");
  const Row row = read_announcement(message, terms);
  EndpointShape shape = receiver_shape(row.flow);
  shape.group = group_in(message);
  Endpoint endpoint(device, shape);
  const auto sink = make_flow_sink(endpoint, control, row.flow);
  endpoint.post_receives();
  pair_as_server(endpoint, device, control, message, terms.token);
  for (const uint64_t count : {row.warmup, row.iterations}) {
    const uint64_t overflowed = device.counter("rx_overflow");
    const FlowCount counted = sink->receive(count);
    control.send(to_json(counted, device.counter("rx_overflow") - overflowed));
  }
  const Json done = control.expect("done");
  part(endpoint);
  return done.value("row", Json::object());
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  MeasureOptions options(app, "64K", "1");
  options.add_flow_options(app);
  if (!parse_command_line(app, argc, argv)) return;
  const Ends ends = options.ends();
  const Measure measure = options.measure();
  Verdict verdict;
  std::vector<Column> columns = kColumns;
  if (measure.group) columns.insert(columns.begin() + 1, {"/receiver", "receiver", 17});
  run_measurement(kName, ends, measure, columns, verdict,
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
