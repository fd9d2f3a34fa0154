// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "common/failure.h"
#include "compare/fabric.h"
#include "compare/figures.h"
#include "compare/plot.h"
#include "compare/ucx.h"
#include "support/catch.h"

namespace diwarp::tools {
namespace {

/// Of a run of libfabric-bin 1.17.0-3 (Debian 12).
constexpr const char* kPrinted =
    "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    "64      5k      =5k      625k        0.06s     11.00       5.82       0.17\n";
constexpr const char* kPrintedLarge =
    "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n"
    "1m      50      =50      100m        0.37s    282.15    3716.36       0.00\n";

Measurements two_rounds(std::string_view lane, Sample first, Sample second) {
  Measurements measurements;
  measurements.samples[std::string(lane)] = {first, second};
  return measurements;
}

TEST_CASE("the output of fi_pingpong is read by its title") {
  CHECK(parse_fi_pingpong(kPrinted) == 5.82);
  CHECK(parse_fi_pingpong(kPrintedLarge) == 3716.36);
  CHECK(parse_fi_pingpong(std::string("a warning before\n") + kPrinted) == 5.82);
}

TEST_CASE("the output of fi_pingpong without a figure gives none") {
  const std::string title = std::string(kPrinted).substr(0, std::string(kPrinted).find('\n') + 1);
  for (const std::string& output :
       {std::string(), title, title + "64 5k\n", title + "64 5k =5k 625k 0.06s 11.00 - 0.17\n",
        title + "64 5k =5k 625k 0.06s 11.00 0 0.17\n",
        std::string("fi_getinfo: ../prov/provider.c:1, ret=-61 (No data available)\n")}) {
    CAPTURE(output);
    CHECK_FALSE(parse_fi_pingpong(output).has_value());
  }
}

TEST_CASE("the output of ucx_perftest is read by its titles, and without them gives no figure") {
  const std::string titles =
      "iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,overall_bw,avg_mr,overall_mr\n";
  const std::string figures = " 500,0.260,3363.977,8709.472,297.27,114.82,297,115\n";
  const auto parsed = parse_ucx_perftest(titles + figures);
  REQUIRE(parsed);
  CHECK(parsed->latency == 8709.472);
  CHECK(parsed->bandwidth == Catch::Approx(114.82 * 1048576));
  for (const std::string& output : {std::string(), titles, figures, titles + "1,2\n",
                                    titles + " 500,0.260,3363.977,-,297.27,114.82,297,115\n"}) {
    CAPTURE(output);
    CHECK_FALSE(parse_ucx_perftest(output).has_value());
  }
}

TEST_CASE("every row is of lanes that there are, and both of one kind") {
  std::set<std::string_view> names;
  for (const Row& row : row_table()) {
    CAPTURE(row.name);
    CHECK(names.insert(row.name).second);
    const Kind kind = info_of_lane(row.lane).kind;
    if (!row.baseline.empty()) CHECK(info_of_lane(row.baseline).kind == kind);
  }
  CHECK(lanes_of(row_table()).size() == lane_table().size());
}

TEST_CASE("a spread has quartiles between the values") {
  const Spread spread = spread_of({4, 1, 3, 2});
  CHECK(spread.min == 1);
  CHECK(spread.low == Catch::Approx(1.75));
  CHECK(spread.median == Catch::Approx(2.5));
  CHECK(spread.high == Catch::Approx(3.25));
  CHECK(spread.max == 4);
  CHECK(spread_of({7}).high == 7);
}

TEST_CASE("a ratio is of the same round, and its target looks one way") {
  Measurements measurements = two_rounds("ud-send-ping", {.value = 3}, {.value = 8});
  measurements.samples["udp-ping"] = {{.value = 3}, {.value = 5}};
  Row row{.name = "x", .title = "x", .lane = "ud-send-ping", .baseline = "udp-ping"};
  CHECK(figure_of(row, measurements).values == std::vector<double>{1, 1.6});
  CHECK_FALSE(reached(figure_of(row, measurements)).has_value());
  row.target = 1.3;
  CHECK(reached(figure_of(row, measurements)) == true);
  row.target = 1.29;
  CHECK(reached(figure_of(row, measurements)) == false);
  row.direction = Direction::at_least;
  CHECK(reached(figure_of(row, measurements)) == true);
}

TEST_CASE("a bandwidth with more than one percent of loss reaches no target") {
  const Row row{.name = "x",
                .title = "x",
                .lane = "ud-record",
                .baseline = "",
                .target = 1,
                .direction = Direction::at_least};
  const Sample whole{.value = 2e9, .sent = 1000, .lost = 0};
  Sample lossy = whole;
  lossy.lost = 20;
  CHECK(reached(figure_of(row, two_rounds("ud-record", whole, lossy))) == true);
  lossy.lost = 21;
  CHECK(reached(figure_of(row, two_rounds("ud-record", whole, lossy))) == false);
}

TEST_CASE("a ratio to a bandwidth with more than one percent of loss reaches no target") {
  const Row row{.name = "x",
                .title = "x",
                .lane = "rd-send",
                .baseline = "ud-send",
                .target = 0.8,
                .direction = Direction::at_least};
  Measurements measurements = two_rounds("rd-send", {.value = 1e9}, {.value = 1e9});
  std::vector<Sample>& baseline = measurements.samples["ud-send"];
  baseline.assign(2, {.value = 1e9, .sent = 1000, .lost = 10});
  CHECK(reached(figure_of(row, measurements)) == true);
  baseline[0].lost = 11;
  CHECK(reached(figure_of(row, measurements)) == false);
}

TEST_CASE("a row that could not be measured has a reason instead of a figure") {
  Measurements measurements;
  measurements.obstacles["udp-trains"] = "no such thing";
  const Row row{
      .name = "x", .title = "x", .lane = "ud-record", .baseline = "udp-trains", .target = 1};
  const Figure figure = figure_of(row, measurements);
  CHECK(figure.obstacle == "no such thing");
  CHECK_FALSE(reached(figure).has_value());
}

TEST_CASE("a plot is green only where a target is reached") {
  Measurements measured;
  measured.samples["ud-send-ping"] = {{.value = 1}};
  measured.samples["udp-ping"] = {{.value = 1}};
  const auto drawn_as = [&](std::optional<double> target) {
    const Row row{.name = "r",
                  .title = "r",
                  .lane = "ud-send-ping",
                  .baseline = "udp-ping",
                  .target = target};
    const std::vector<Figure> figures = {figure_of(row, measured)};
    const std::string script = plot_script("x.svg", "here", figures);
    const size_t end = script.find("\nEND");
    return script[end - 1];
  };
  CHECK(drawn_as(std::nullopt) == '0');
  CHECK(drawn_as(1.5) == '1');
  CHECK(drawn_as(0.5) == '2');
  const std::vector<Figure> none = {};
  CHECK_THAT(plot_script("x.svg", "here", none),
             Catch::Matchers::ContainsSubstring("$7 == 1 ? $1 : NaN):4:2:3 with xerrorbars pt 7 ps "
                                                "0.7 lc rgb '#1f6f3f' title 'reached'"));
}

TEST_CASE("rows of another size have it in their titles, and no target") {
  const std::vector<Row> rows = resized(choose_rows("^ud-send-latency$|^ud-memory$"), 4096);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].title == "UD Send 4 KiB / UDP");
  CHECK_FALSE(rows[0].target);
  CHECK(rows[1].title == "memory of an idle UD QP, KiB");
  CHECK(rows[1].target);
  CHECK(resized(choose_rows("^ud-record-bandwidth$"), 100)[0].title ==
        "UD Write-Record 100 B / UDP GSO+GRO");
}

TEST_CASE("a plot has the rows that are ratios") {
  Measurements measurements = two_rounds("ud-send-ping", {.value = 3}, {.value = 8});
  measurements.samples["udp-ping"] = {{.value = 3}, {.value = 5}};
  measurements.samples["ud-idle-memory"] = {{.value = 2048}};
  const std::vector<Figure> figures = {
      figure_of({.name = "r",
                 .title = "a ratio",
                 .lane = "ud-send-ping",
                 .baseline = "udp-ping",
                 .target = 1.15},
                measurements),
      figure_of({.name = "m", .title = "a size", .lane = "ud-idle-memory", .baseline = ""},
                measurements)};
  const std::string script = plot_script("it's.svg", "here", figures);
  CHECK_THAT(script, Catch::Matchers::ContainsSubstring("1.3 1.15 1.45 1 \"a ratio\" 1.15 2\n"));
  CHECK_THAT(script, !Catch::Matchers::ContainsSubstring("a size"));
  CHECK_THAT(script, Catch::Matchers::ContainsSubstring("set output 'it''s.svg'"));
}

}  // namespace
}  // namespace diwarp::tools
