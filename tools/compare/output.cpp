// SPDX-License-Identifier: Apache-2.0
#include "compare/output.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "common/summary.h"
#include "common/text.h"
#include "compare/verbs_lanes.h"

namespace diwarp::tools {
namespace {

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::latency:
      return "latency";
    case Kind::ping_pong:
      return "ping-pong";
    case Kind::bandwidth:
      return "bandwidth";
    case Kind::rate:
      return "rate";
    case Kind::memory:
      return "memory";
  }
  return "";
}

std::string target_of(const Row& row) {
  if (!row.target) return "-";
  return (row.direction == Direction::at_most ? "<= " : ">= ") + number(*row.target, 2);
}

std::string verdict_of(const Figure& figure) {
  const auto result = reached(figure);
  return !result ? "-" : *result ? "yes" : "no";
}

/// Its own, and the baseline's; "" where nothing can get lost.
std::string loss_of(const Figure& figure) {
  const bool may_lose = figure.kind == Kind::bandwidth || figure.kind == Kind::rate;
  if (!may_lose) return "";
  const std::string own = number(figure.loss_percent, 2) + " %";
  return figure.baseline.empty() ? own
                                 : own + " and " + number(figure.baseline_loss_percent, 2) + " %";
}

std::string seconds(const ProcessorTime& time) {
  return number(static_cast<double>(time.user_us + time.system_us) / 1e6, 2);
}

/// The absolute values below the ratio, or why there are none.
void print_values(const Figure& figure) {
  const std::string unit(unit_of(figure.kind));
  std::printf("    %s %s", number(median(figure.lane), 2).c_str(), unit.c_str());
  if (!figure.baseline.empty())
    std::printf(", baseline %s %s", number(median(figure.baseline), 2).c_str(), unit.c_str());
  const std::string loss = loss_of(figure);
  if (!loss.empty()) std::printf(", lost %s", loss.c_str());
  std::printf(", cpu %s+%s s\n", seconds(figure.lane_times.near).c_str(),
              seconds(figure.lane_times.far).c_str());
}

void print_figure(const Figure& figure) {
  std::printf("%-36s", figure.row.title.c_str());
  if (!figure.obstacle.empty()) {
    std::printf("\n");
    print_wrapped("    not measured: ", figure.obstacle);
    return;
  }
  const bool ratio = !figure.baseline.empty();
  std::printf("%8s%8s to %-7s%9s%8s\n", ratio ? number(figure.spread.median, 2).c_str() : "-",
              number(figure.spread.low, 2).c_str(), number(figure.spread.high, 2).c_str(),
              target_of(figure.row).c_str(), verdict_of(figure).c_str());
  print_values(figure);
}

Json to_json(const EndTimes& times) {
  return {{"near", in_seconds(times.near)}, {"far", in_seconds(times.far)}};
}

Json to_json(const Spread& spread) {
  return {{"median", spread.median},
          {"low_quartile", spread.low},
          {"high_quartile", spread.high},
          {"min", spread.min},
          {"max", spread.max}};
}

}  // namespace

void print_list(std::span<const Row> rows) {
  for (const Row& row : rows) {
    std::printf("%-28s%-40s%s\n", std::string(row.name).c_str(), row.title.c_str(),
                target_of(row).c_str());
  }
}

void print_entries(const char* title, const Json& entries) {
  std::printf("%s\n", title);
  for (const auto& [name, value] : entries.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    print_entry(name, text, 24);
  }
}

void print_table(std::span<const Figure> figures) {
  std::printf("%-36s%8s%19s%9s%8s\n", "", "ratio", "quartiles     ", "target", "reached");
  for (const Figure& figure : figures) print_figure(figure);
}

Json to_json(const Settings& settings) {
  return {{"rounds", settings.rounds},
          {"milliseconds",
           std::chrono::duration_cast<std::chrono::milliseconds>(settings.time).count()},
          {"processors", settings.cpus},
          {"datagram_bytes", kSegment},
          {"message_bytes", settings.size ? Json(*settings.size) : Json()},
          {"ipv6", settings.ipv6},
          {"device", settings.device.name},
          {"hardware", kHardwareChoices[static_cast<size_t>(settings.device.hardware)].name}};
}

Json to_json(const Figure& figure) {
  const Row& row = figure.row;
  Json json = {{"name", row.name},
               {"title", row.title},
               {"kind", name_of(figure.kind)},
               {"unit", unit_of(figure.kind)},
               {"target", row.target ? Json(*row.target) : Json()},
               {"direction", row.direction == Direction::at_most ? "at_most" : "at_least"}};
  if (!figure.obstacle.empty()) {
    json["not_measured"] = figure.obstacle;
    return json;
  }
  json["lane"] = {{"name", row.lane},
                  {"rounds", figure.lane},
                  {"median", median(figure.lane)},
                  {"loss_percent", figure.loss_percent},
                  {"processor", to_json(figure.lane_times)}};
  if (!figure.baseline.empty()) {
    json["baseline"] = {{"name", row.baseline},
                        {"rounds", figure.baseline},
                        {"median", median(figure.baseline)},
                        {"loss_percent", figure.baseline_loss_percent},
                        {"processor", to_json(figure.baseline_times)}};
  }
  json[figure.baseline.empty() ? "value" : "ratio"] = to_json(figure.spread);
  const auto result = reached(figure);
  json["reached"] = result ? Json(*result) : Json();
  return json;
}

}  // namespace diwarp::tools
