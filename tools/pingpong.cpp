// SPDX-License-Identifier: Apache-2.0
// diwarp-pingpong: how long a message takes from one process to another.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "common/echo.h"
#include "common/measure.h"
#include "common/pairing.h"
#include "common/program.h"
#include "common/progress_line.h"
#include "common/summary.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-pingpong";
constexpr const char* kDescription =
    "Measures half round trips of messages between two processes, both polling. Over UD a message\n"
    "that gets lost is sent again; its round trip does not count. With --verify the times include\n"
    "writing and checking the contents.";

const std::vector<Column> kColumns = {{"/transport", "transport", 9},
                                      {"/op", "op", 6},
                                      {"/size", "bytes", 11},
                                      {"/iterations", "iterations", 12},
                                      {"/half_rtt_us/min", "min us", 10, 2},
                                      {"/half_rtt_us/p50", "median us", 11, 2},
                                      {"/half_rtt_us/p99", "99% us", 10, 2},
                                      {"/half_rtt_us/p999", "99.9% us", 10, 2},
                                      {"/half_rtt_us/max", "max us", 10, 2},
                                      {"/lost", "lost", 7}};

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

std::vector<double> measure_row(Pinger& pinger, const Row& row) {
  ProgressLine progress(std::to_string(row.size) + " bytes", row.iterations);
  std::vector<double> half_rtts_us;
  half_rtts_us.reserve(row.iterations);
  for (uint64_t i = 0; i < row.warmup; ++i) pinger.ping();
  pinger.reset_counts();
  for (uint64_t i = 0; i < row.iterations; ++i) {
    const auto took = pinger.ping();
    progress.update(i);
    if (!took) continue;
    half_rtts_us.push_back(std::chrono::duration<double, std::micro>(*took).count() / 2);
  }
  return half_rtts_us;
}

Json result(const Measure& measure, const Row& row, const Pinger& pinger, const Summary& summary) {
  return {{"transport", to_string(measure.transport)},
          {"op", "send"},
          {"size", row.size},
          {"iterations", row.iterations},
          {"warmup", row.warmup},
          {"verify", measure.verify},
          {"sent", pinger.sent()},
          {"lost", pinger.lost()},
          {"half_rtt_us",
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

  Json run_row(const Device& device, Control& control, uint64_t size) {
    const Row row = plan(measure_, size);
    Endpoint endpoint(device, echo_shape(measure_.transport, size));
    endpoint.post_receives();
    pair_as_client(endpoint, control, {{"type", "row"}, {"size", size}}, terms_.token);
    Pinger pinger(endpoint, control, measure_.verify);
    const Json figures = result(measure_, row, pinger, summarize(measure_row(pinger, row)));
    control.send({{"type", "done"}, {"row", figures}});
    control.expect("done");
    part(endpoint);
    verdict_.check_loss(pinger.lost(), pinger.sent(), size, measure_.max_loss);
    return figures;
  }

 private:
  const Measure& measure_;
  const Terms& terms_;
  Verdict& verdict_;
};

Json serve_row(const Device& device, Control& control, const Terms& terms) {
  const Json row = control.expect("row");
  const uint64_t size = number_in(row, "size", 0, kMaxMessage);
  Endpoint endpoint(device, echo_shape(terms.transport, size));
  endpoint.post_receives();
  pair_as_server(endpoint, device, control, row, terms.token);
  Echoer(endpoint, control, terms.verify).run();
  const Json done = control.expect("done");
  control.send({{"type", "done"}});
  part(endpoint);
  return done.value("row", Json::object());
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  // What is lost is sent again, and does not count in the times.
  MeasureOptions options(app, "64", "10");
  if (!parse_command_line(app, argc, argv)) return;
  const Measure measure = options.measure();
  Verdict verdict;
  run_measurement(
      kName, options.ends(), measure, kColumns, verdict,
      {.client =
           [&](const Device& device, Control& control, const Terms& terms, uint64_t size) {
             return Client(measure, terms, verdict).run_row(device, control, size);
           },
       .server = serve_row});
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
