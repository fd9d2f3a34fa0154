// SPDX-License-Identifier: Apache-2.0
// diwarp-pingpong: how long a message takes from one process to another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "common/cost.h"
#include "common/measure.h"
#include "common/pairing.h"
#include "common/pingpong_ends.h"
#include "common/program.h"
#include "common/progress_line.h"
#include "common/summary.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-pingpong";
constexpr const char* kDescription =
    "Measures half round trips of messages between two processes, both polling. Over UD a "
    "message that gets lost is sent again; its round trip does not count, nor does one that came "
    "in part without --partial. With --receivers a message goes to a group, and the round trip "
    "ends when the last receiver has answered. read and atomic involve one side only: their times "
    "are those of the full operation, from the post to the completion. \"cpu s\" is the processor "
    "time of the client's process and of the server's. With --verify the times include writing "
    "and checking the contents.";

constexpr const char* kHalf = "half round trip";
constexpr const char* kFull = "full operation";

/// The member of a row that has the times, which says of what.
const char* times_member(Operation operation) {
  return is_one_sided(operation) ? "operation_us" : "half_rtt_us";
}

Column time_column(const std::string& name, const char* title) {
  return {"/half_rtt_us/" + name, title, 9, 2, "/operation_us/" + name};
}

const std::vector<Column> kColumns = {
    {"/size", "bytes", 10},       {"/iterations", "messages", 9}, time_column("min", "min us"),
    time_column("p50", "median"), time_column("p99", "99 %"),     time_column("p999", "99.9 %"),
    time_column("max", "max"),    {"/lost", "lost", 6},           {processor_text, "cpu s", 10}};

/// "ud send, half round trip".
std::string caption_of(const Json& row) {
  return row.value("transport", "") + " " + row.value("op", "") + ", " + row.value("measured", "");
}

/// About a second for small messages, a gigabyte for large ones.
uint64_t default_iterations(uint64_t size) {
  constexpr uint64_t kBytes = uint64_t{1} << 28;
  return std::clamp<uint64_t>(kBytes / std::max<uint64_t>(size, 1), 10, 20'000);
}

struct Row {
  uint64_t size = 0;
  uint64_t iterations = 0;
  uint64_t warmup = 0;
};

Row plan(const Measure& measure, uint64_t size) {
  Row row{.size = size};
  row.iterations = measure.iterations.value_or(default_iterations(size));
  row.warmup = measure.warmup.value_or(std::min<uint64_t>(row.iterations / 10, 1000));
  return row;
}

/// The servers note when the measured part begins, and answer on.
void begin_measured(const Peers& peers) {
  peers.send({{"type", "measure"}});
  for (Control& control : peers) control.expect("measuring");
}

/// In microseconds.
std::vector<double> measure_row(NearEnd& near, const Row& row, Operation operation,
                                ProgressLine& progress) {
  const double share = is_one_sided(operation) ? 1 : 0.5;
  std::vector<double> times;
  times.reserve(row.iterations);
  for (uint64_t i = 0; i < row.iterations; ++i) {
    const auto took = near.ping();
    progress.update(i);
    if (took) times.push_back(std::chrono::duration<double, std::micro>(*took).count() * share);
  }
  return times;
}

Json result(const Measure& measure, const Row& row, const NearEnd::Counts& counts,
            const Summary& summary, size_t receivers) {
  return {{"transport", to_string(measure.transport)},
          {"segment", measure.segment},
          {"op", info_of(measure.operation).name},
          {"size", row.size},
          {"iterations", row.iterations},
          {"warmup", row.warmup},
          {"verify", measure.verify},
          {"receivers", receivers},
          {"sent", counts.sent},
          {"lost", counts.lost},
          {"partial", counts.partial},
          {"rate", measure.rate},
          {"completion", to_string(measure.completion)},
          {"measured", is_one_sided(measure.operation) ? kFull : kHalf},
          {times_member(measure.operation),
           {{"min", summary.min},
            {"p50", summary.p50},
            {"p99", summary.p99},
            {"p999", summary.p999},
            {"max", summary.max}}}};
}

class Client {
 public:
  Client(const Measure& measure, const Terms& terms, Verdict& verdict)
      : measure_(measure), terms_(terms), verdict_(verdict) {}

  std::vector<Json> run_row(Device& device, const Peers& peers, uint64_t size) {
    const Row row = plan(measure_, size);
    Endpoint endpoint(device, shape(size, peers.size()));
    const auto near = make_near_end(endpoint, peers, measure_.verify);
    endpoint.post_receives();
    pair_with_servers(endpoint, peers, announcement(size), measure_.group, terms_.token);
    for (uint64_t i = 0; i < row.warmup; ++i) near->ping();
    near->reset_counts();
    begin_measured(peers);
    const Meter meter(device);
    const uint64_t ways = is_one_sided(measure_.operation) ? 1 : 2;
    ProgressLine progress(std::to_string(size) + " bytes", row.iterations, ways * size, device);
    const Summary summary = summarize(measure_row(*near, row, measure_.operation, progress));
    const Cost cost = meter.cost();
    const NearEnd::Counts& counts = near->counts();
    Json figures = result(measure_, row, counts, summary, peers.size());
    figures["processor"] = processor_times(cost, cost_of(peers));
    peers.send({{"type", "done"}, {"rows", Json::array({figures})}});
    part(endpoint);
    verdict_.check_loss(counts.lost, counts.sent, size, measure_.max_loss);
    return {figures};
  }

 private:
  Json announcement(uint64_t size) const {
    return {
        {"type", "row"}, {"size", size}, {"rate", measure_.rate}, {"partial", measure_.partial}};
  }

  /// Of the servers: of a group, all together.
  static Cost cost_of(const Peers& peers) {
    peers.send({{"type", "stop"}});
    Cost sum;
    for (Control& control : peers) {
      sum.processor = sum.processor + cost_in(control.expect("spent")).processor;
    }
    return sum;
  }

  EndpointShape shape(uint64_t size, size_t receivers) const {
    EndpointShape shape = near_shape(measure_.transport, measure_.operation, size);
    shape.segment = parse_segment(measure_.segment);
    shape.congestion = measure_.congestion;
    shape.transmissions = measure_.transmissions;
    shape.completion = measure_.completion;
    shape.max_rate = measure_.rate;
    shape.takes_partial = measure_.partial;
    // Answers of several segments may hold half of the receives.
    if (receivers > 1)
      shape.receive_slots = std::max(shape.receive_slots, static_cast<uint32_t>(2 * receivers));
    return shape;
  }

  const Measure& measure_;
  const Terms& terms_;
  Verdict& verdict_;
};

std::vector<Json> serve_row(Device& device, Control& control, const Terms& terms) {
  const Json row = control.expect("row");
  const uint64_t size = number_in(row, "size", 0, kMaxMessage);
  check_size(terms.operation, size);
  EndpointShape shape = far_shape(terms.transport, terms.operation, size);
  shape.segment = parse_segment(terms.segment);
  shape.congestion = terms.congestion;
  shape.completion = terms.completion;
  shape.max_rate = number_in(row, "rate", 0, UINT64_MAX);
  shape.takes_partial = flag_in(row, "partial");
  shape.group = group_in(row);
  Endpoint endpoint(device, shape);
  const auto far = make_far_end(endpoint, control, terms.operation, terms.verify);
  endpoint.post_receives();
  pair_as_server(endpoint, device, control, row, terms.token);
  far->run();
  control.expect("measure");
  const Meter meter(device);
  control.send({{"type", "measuring"}});
  far->run();
  control.expect("stop");
  Json spent = to_json(meter.cost());
  spent["type"] = "spent";
  control.send(spent);
  const std::vector<Json> rows = rows_in(control.expect("done"));
  part(endpoint);
  return rows;
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  // A lost message is sent again, and does not count in the times.
  MeasureOptions options(app, "64", "10");
  options.add_ping_options(app);
  if (!parse_command_line(app, argc, argv)) return;
  const Ends ends = options.ends();
  const Measure measure = options.measure();
  Verdict verdict;
  run_measurement(kName, ends, measure, caption_of, kColumns, verdict,
                  {.client =
                       [&](Device& device, Peers peers, const Terms& terms, uint64_t size) {
                         return Client(measure, terms, verdict).run_row(device, peers, size);
                       },
                   .server =
                       [](Device& device, Peers peers, const std::vector<Terms>& terms) {
                         return serve_row(device, peers, terms.front());
                       }});
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
