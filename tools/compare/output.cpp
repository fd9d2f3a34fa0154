// SPDX-License-Identifier: Apache-2.0
#include "compare/output.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "common/summary.h"
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

/// Its own, and the baseline's.
std::string loss_of(const Figure& figure) {
  const bool may_lose = figure.kind == Kind::bandwidth || figure.kind == Kind::rate;
  if (!may_lose) return "-";
  const std::string own = number(figure.loss_percent, 2);
  return figure.baseline.empty() ? own : own + " / " + number(figure.baseline_loss_percent, 2);
}

void print_figure(const Figure& figure) {
  std::printf("%-36s", std::string(figure.row.title).c_str());
  if (!figure.obstacle.empty()) {
    std::printf("  not measured: %s\n", figure.obstacle.c_str());
    return;
  }
  const bool ratio = !figure.baseline.empty();
  std::printf("%8s%9s %-4s%9s%7s to %-6s%8s%8s %s\n", number(median(figure.lane), 2).c_str(),
              ratio ? number(median(figure.baseline), 2).c_str() : "-",
              std::string(unit_of(figure.kind)).c_str(),
              ratio ? number(figure.spread.median, 2).c_str() : "-",
              number(figure.spread.low, 2).c_str(), number(figure.spread.high, 2).c_str(),
              target_of(figure.row).c_str(), verdict_of(figure).c_str(), loss_of(figure).c_str());
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
    std::printf("%-28s%-40s%s\n", std::string(row.name).c_str(), std::string(row.title).c_str(),
                target_of(row).c_str());
  }
}

void print_entries(const char* title, const Json& entries) {
  std::printf("%s\n", title);
  for (const auto& [name, value] : entries.items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
    std::printf("  %-22s%s\n", name.c_str(), text.c_str());
  }
}

void print_table(std::span<const Figure> figures) {
  std::printf("%-36s%8s%9s %-4s%9s%17s%8s%8s %s\n", "", "it", "baseline", "", "ratio", "quartiles",
              "target", "reached", "loss %: it / baseline");
  for (const Figure& figure : figures) print_figure(figure);
}

Json to_json(const Settings& settings) {
  return {{"rounds", settings.rounds},
          {"milliseconds",
           std::chrono::duration_cast<std::chrono::milliseconds>(settings.time).count()},
          {"processors", settings.cpus},
          {"datagram_bytes", kSegment},
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
                  {"loss_percent", figure.loss_percent}};
  if (!figure.baseline.empty()) {
    json["baseline"] = {{"name", row.baseline},
                        {"rounds", figure.baseline},
                        {"median", median(figure.baseline)},
                        {"loss_percent", figure.baseline_loss_percent}};
  }
  json[figure.baseline.empty() ? "value" : "ratio"] = to_json(figure.spread);
  const auto result = reached(figure);
  json["reached"] = result ? Json(*result) : Json();
  return json;
}

}  // namespace diwarp::tools
