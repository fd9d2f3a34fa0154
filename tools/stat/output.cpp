// SPDX-License-Identifier: Apache-2.0
#include "stat/output.h"

#include <diwarp/version.h>

#include <array>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "base/counters.h"
#include "stat/figures.h"

namespace diwarp::tools {
namespace {

using Json = nlohmann::ordered_json;
using counters_block::Kind;

// --- JSON.

Json values_of(const DeviceSnapshot& device, Kind kind) {
  Json values = Json::object();
  for (const Value& one : device.values)
    if (one.kind == kind) values[one.name] = one.value;
  return values;
}

Json rates_of(const Growth& growth) {
  return {{"packets_in", growth.rate(&Figures::packets_in)},
          {"bytes_in", growth.rate(&Figures::bytes_in)},
          {"packets_out", growth.rate(&Figures::packets_out)},
          {"bytes_out", growth.rate(&Figures::bytes_out)},
          {"drops", growth.rate(&Figures::drops)},
          {"crc_errors", growth.rate(&Figures::crc_errors)},
          {"retransmissions", growth.rate(&Figures::retransmissions)},
          {"completions", growth.rate(&Figures::completions)}};
}

Json device_in_json(const DeviceSample& device, const Growth& growth) {
  const Figures& all = growth.all;
  Json drops = Json::object();
  for (const auto& [reason, count] : drops_of(device.device)) drops[reason] = count;
  return {{"pid", device.process},
          {"program", device.program},
          {"device", device.device.number},
          {"address", device.device.address},
          {"library", device.device.library},
          {"packets_in", all.packets_in},
          {"bytes_in", all.bytes_in},
          {"packets_out", all.packets_out},
          {"bytes_out", all.bytes_out},
          {"drops", drops},
          {"crc_errors", all.crc_errors},
          {"retransmissions", all.retransmissions},
          {"open_records", all.open_records},
          {"queue_pairs", all.queue_pairs},
          {"completion_queues", all.completion_queues},
          {"completions_waiting", all.waiting},
          {"seconds", growth.seconds},
          {"work_share", growth.work_share()},
          {"idle_share", growth.idle_share()},
          {"per_second", rates_of(growth)},
          {"gauges", values_of(device.device, Kind::gauge)},
          {"counters", values_of(device.device, Kind::sum)}};
}

// --- Prometheus.

/// A value of any device under its metric, in the form that the metric has.
struct Metric {
  std::string name;
  std::string label;  ///< one more, or empty
  double scale = 1;
};

constexpr std::string_view kDrop = "drop_";
constexpr std::string_view kNanoseconds = "_ns";

Metric metric_of(const Value& value) {
  std::string_view name = value.name;
  if (value.kind == Kind::gauge) return {.name = "diwarp_" + value.name, .label = {}};
  if (name.starts_with(kDrop))
    return {.name = "diwarp_drops_total",
            .label = ",reason=\"" + std::string(name.substr(kDrop.size())) + "\""};
  if (!name.ends_with(kNanoseconds))
    return {.name = "diwarp_" + value.name + "_total", .label = {}};
  name.remove_suffix(kNanoseconds.size());
  return {.name = "diwarp_" + std::string(name) + "_seconds_total", .label = {}, .scale = 1e-9};
}

/// Of the value itself, in the unit that its process counts in.
std::string_view description_of(std::string_view name) {
  if (name.starts_with(kDrop)) return "what was dropped, by reason";
  for (size_t i = 0; i < Counters::count(); ++i)
    if (const auto one = static_cast<Counter>(i); Counters::name(one) == name)
      return Counters::description(one);
  for (size_t i = 0; i < Counters::meter_count(); ++i)
    if (const auto one = static_cast<Meter>(i); Counters::name(one) == name)
      return Counters::description(one);
  return "of another version of diwarp";
}

/// Of the metric, whose unit may be another.
std::string help_of(const Value& value, const Metric& metric) {
  std::string help(description_of(value.name));
  constexpr std::string_view kUnit = "nanoseconds";
  if (metric.scale != 1 && help.starts_with(kUnit)) help.replace(0, kUnit.size(), "seconds");
  return help;
}

/// Texts are printable already.
std::string escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '\\' || c == '"') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string labels_of(const DeviceSample& device) {
  return "pid=\"" + std::to_string(device.process) + "\",program=\"" + escaped(device.program) +
         "\",device=\"" + std::to_string(device.device.number) + "\",address=\"" +
         escaped(device.device.address) + "\"";
}

std::string number_in_text(const Value& value, double scale) {
  if (scale == 1) return std::to_string(value.value);
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9f", static_cast<double>(value.value) * scale);
  return text.data();
}

/// All lines of a metric stand together, below its HELP and TYPE.
struct Family {
  Kind kind = Kind::sum;
  std::string help;
  std::vector<std::string> lines;
};
using Families = std::map<std::string, Family>;

void add_device(Families& families, const DeviceSample& device) {
  const std::string labels = labels_of(device);
  std::set<std::string> seen;  // two names of a hostile block may become one metric
  for (const Value& value : device.device.values) {
    const Metric metric = metric_of(value);
    if (!seen.insert(metric.name + metric.label).second) continue;
    Family& family = families[metric.name];
    if (family.lines.empty()) {
      family.kind = value.kind;
      family.help = help_of(value, metric);
    }
    if (family.kind != value.kind) continue;  // another library means something else by that name
    family.lines.push_back(metric.name + "{" + labels + metric.label + "} " +
                           number_in_text(value, metric.scale));
  }
}

}  // namespace

std::string json_of(const Sample& now, const Sample* before, int indent) {
  Json json = {{"tool", "diwarp-stat"},
               {"version", to_string(version())},
               {"devices", Json::array()},
               {"problems", Json::array()},
               {"other_users_left_out", now.others_left_out}};
  for (const DeviceSample& device : now.devices)
    json["devices"].push_back(device_in_json(device, growth_of(device, now, before)));
  for (const Problem& problem : now.problems)
    json["problems"].push_back({{"pid", problem.process}, {"message", problem.message}});
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

std::string prometheus_of(const Sample& now) {
  Families families;
  std::set<std::string> seen;  // a malicious process may tell of one device twice
  for (const DeviceSample& device : now.devices)
    if (seen.insert(labels_of(device)).second) add_device(families, device);
  std::string text;
  for (const Problem& problem : now.problems) text += "# " + problem.message + "\n";
  for (const auto& [name, family] : families) {
    text += "# HELP " + name + " " + family.help + "\n";
    text += "# TYPE " + name + (family.kind == Kind::gauge ? " gauge\n" : " counter\n");
    for (const std::string& line : family.lines) text += line + "\n";
  }
  return text;
}

}  // namespace diwarp::tools
