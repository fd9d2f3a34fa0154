// SPDX-License-Identifier: Apache-2.0
#include "stat/figures.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace diwarp::tools {
namespace {

constexpr std::string_view kDrop = "drop_";

/// A sum among the figures and the counters that it is made of.
struct Part {
  std::string_view counter;
  uint64_t Figures::*sum;
};

constexpr auto kParts = std::to_array<Part>({
    {"rx_datagrams", &Figures::packets_in},
    {"rc_rx_fpdus", &Figures::packets_in},
    {"rx_bytes", &Figures::bytes_in},
    {"rc_rx_bytes", &Figures::bytes_in},
    {"tx_datagrams", &Figures::packets_out},
    {"rc_tx_fpdus", &Figures::packets_out},
    {"tx_bytes", &Figures::bytes_out},
    {"rc_tx_bytes", &Figures::bytes_out},
    {"drop_crc", &Figures::crc_errors},
    {"rc_crc_errors", &Figures::crc_errors},
    {"rd_retransmitted", &Figures::retransmissions},
    {"read_retries", &Figures::retransmissions},
    {"completions", &Figures::completions},
    {"engine_work_ns", &Figures::work_ns},
    {"engine_idle_ns", &Figures::idle_ns},
});

/// 0 where a value went back, as two that belong together are not read at one moment.
uint64_t difference(uint64_t more, uint64_t less) { return more > less ? more - less : 0; }

const DeviceSample* find(const Sample* sample, const DeviceSample& wanted) {
  if (sample == nullptr) return nullptr;
  const auto same = [&](const DeviceSample& one) {
    return one.process == wanted.process && one.device.number == wanted.device.number &&
           one.device.opened == wanted.device.opened;
  };
  const auto found = std::ranges::find_if(sample->devices, same);
  return found == sample->devices.end() ? nullptr : &*found;
}

double share(uint64_t ns, double seconds) {
  return seconds > 0 ? std::min(static_cast<double>(ns) / 1e9 / seconds, 1.0) : 0;
}

}  // namespace

Figures figures_of(const DeviceSnapshot& device) {
  Figures figures;
  for (const Part& part : kParts) figures.*part.sum += device.get(part.counter);
  for (const auto& [reason, count] : drops_of(device)) figures.drops += count;
  figures.queue_pairs = device.get("queue_pairs");
  figures.open_records = device.get("open_records");
  figures.completion_queues = device.get("completion_queues");
  figures.waiting = difference(device.get("completions"), device.get("completions_polled"));
  return figures;
}

Reasons drops_of(const DeviceSnapshot& device) {
  Reasons reasons;
  for (const Value& one : device.values) {
    const bool drop = one.name.starts_with(kDrop);
    if (one.value == 0 || (!drop && one.name != "rx_overflow")) continue;
    reasons.emplace_back(drop ? one.name.substr(kDrop.size()) : one.name, one.value);
  }
  return reasons;
}

double Growth::rate(uint64_t Figures::*sum) const {
  return seconds > 0 ? static_cast<double>(grown.*sum) / seconds : 0;
}

double Growth::work_share() const { return share(grown.work_ns, seconds); }

double Growth::idle_share() const {
  return std::min(share(grown.idle_ns, seconds), 1 - work_share());
}

Growth growth_of(const DeviceSample& device, const Sample& now, const Sample* before) {
  Growth growth;
  growth.all = growth.grown = figures_of(device.device);
  const DeviceSample* const earlier = find(before, device);
  const uint64_t since = earlier != nullptr ? before->now : device.device.opened;
  growth.seconds = static_cast<double>(difference(now.now, since)) / 1e9;
  if (earlier == nullptr) return growth;
  const Figures was = figures_of(earlier->device);
  for (uint64_t Figures::*const sum :
       {&Figures::packets_in, &Figures::bytes_in, &Figures::packets_out, &Figures::bytes_out,
        &Figures::drops, &Figures::crc_errors, &Figures::retransmissions, &Figures::completions,
        &Figures::work_ns, &Figures::idle_ns})
    growth.grown.*sum = difference(growth.all.*sum, was.*sum);
  return growth;
}

}  // namespace diwarp::tools
