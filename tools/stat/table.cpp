// SPDX-License-Identifier: Apache-2.0
#include "stat/table.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <set>
#include <string_view>

#include "stat/figures.h"

namespace diwarp::tools {
namespace {

constexpr std::string_view kIndent = "        ";
constexpr const char* kHead =
    "    PID PROGRAM      QPS   CQ RECS PK-IN BY-IN PKOUT BYOUT DROP  CRC AGAIN WORK";
constexpr std::string_view kLegend =
    "PK packets, BY bytes, QPS queue pairs, CQ completions not polled, RECS open records, AGAIN "
    "sent again, WORK the engine's share of the time";

/// The words in lines of at most kTableWidth; the first begins with `indent`, the others are
/// indented.
void add_wrapped(std::vector<std::string>& lines, std::string_view text,
                 std::string_view indent = "") {
  std::string line(indent);
  bool fresh = true;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (!fresh && line.size() + 1 + word.size() > kTableWidth) {
      lines.push_back(line);
      line = kIndent;
      fresh = true;
    }
    if (!fresh) line += ' ';
    line += word;
    fresh = false;
  }
  lines.push_back(line.substr(0, kTableWidth));
}

template <class... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string in_seconds(double seconds) { return formatted("%.1f s", seconds); }

std::string title_of(const Sample& now, const Sample* before, bool rates) {
  if (now.devices.empty()) return "No running process was found to have a diwarp device.";
  std::set<pid_t> processes;
  for (const DeviceSample& one : now.devices) processes.insert(one.process);
  const std::string what = std::to_string(now.devices.size()) +
                           (now.devices.size() == 1 ? " device of " : " devices of ") +
                           std::to_string(processes.size()) +
                           (processes.size() == 1 ? " process" : " processes");
  if (!rates) return what + ", in all since each was opened";
  if (before == nullptr) return what + ", per second since each was opened";
  return what + ", per second over " + in_seconds(static_cast<double>(now.now - before->now) / 1e9);
}

std::string row_of(const DeviceSample& device, const Growth& growth, bool rates) {
  const auto sum = [&](uint64_t Figures::*one) {
    return compact(rates ? growth.rate(one) : static_cast<double>(growth.all.*one));
  };
  const auto level = [&](uint64_t Figures::*one) {
    return compact(static_cast<double>(growth.all.*one));
  };
  return formatted("%7d %-11.11s %4s %4s %4s %5s %5s %5s %5s %4s %4s %5s %3.0f%%", device.process,
                   device.program.c_str(), level(&Figures::queue_pairs).c_str(),
                   level(&Figures::waiting).c_str(), level(&Figures::open_records).c_str(),
                   sum(&Figures::packets_in).c_str(), sum(&Figures::bytes_in).c_str(),
                   sum(&Figures::packets_out).c_str(), sum(&Figures::bytes_out).c_str(),
                   sum(&Figures::drops).c_str(), sum(&Figures::crc_errors).c_str(),
                   sum(&Figures::retransmissions).c_str(), 100 * growth.work_share());
}

std::string details_of(const DeviceSample& device) {
  std::string text = device.device.address;
  std::string_view separator = "; dropped in all: ";
  for (const auto& [reason, count] : drops_of(device.device)) {
    text += std::string(separator) + reason + ' ' + std::to_string(count);
    separator = ", ";
  }
  return text;
}

}  // namespace

std::string compact(double number) {
  constexpr std::array kUnits = {"", "K", "M", "G", "T", "P", "E"};
  size_t unit = 0;
  // 999.5 is shown as 1.0K.
  while (std::round(number) >= 1000 && unit + 1 < kUnits.size()) {
    number /= 1000;
    ++unit;
  }
  const bool fraction = unit != 0 && number < 9.95;
  return formatted(fraction ? "%.1f%s" : "%.0f%s", number, kUnits[unit]);
}

std::vector<std::string> table_of(const Sample& now, const Sample* before, bool rates) {
  std::vector<std::string> lines;
  lines.push_back(title_of(now, before, rates));
  if (!now.devices.empty()) {
    lines.emplace_back(kHead);
    for (const DeviceSample& device : now.devices) {
      lines.push_back(row_of(device, growth_of(device, now, before), rates));
      add_wrapped(lines, details_of(device), kIndent);
    }
    add_wrapped(lines, kLegend);
  }
  for (const Problem& problem : now.problems) add_wrapped(lines, problem.message);
  if (now.others_left_out)
    lines.emplace_back("Processes of other users are not shown (root: --all).");
  return lines;
}

}  // namespace diwarp::tools
