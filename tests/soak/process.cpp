// SPDX-License-Identifier: Apache-2.0
#include "soak/process.h"

namespace soak {

Process::Process(const Settings& of_process)
    : settings(of_process),
      random(settings.seed * 1000003 + settings.life),
      handles(settings, random),
      clock(settings.round),
      faults(settings, clock) {
  ledger.abort_at_finding(settings.core);
  for (uint32_t place = 0; place < lines.size(); ++place) {
    lines[place].place = place;
    if (place >= 2 && place < kSharedPlace) lines[place].remote = place - 2;
  }
  lines[0].type = diwarp::QpType::ud;
  lines[1].type = diwarp::QpType::rd;
}

uint64_t Process::message_key(uint32_t life, const Head& head, uint32_t to) const {
  return key(life, Kind::message, head.number * 64 + head.type * 16 + to);
}

void Process::tell(uint32_t index, const std::string& text) const {
  const uint32_t life = remotes[index].life;
  if (life == 0) return;
  Ledger::print("to " + std::to_string(index) + " " + std::to_string(life) + " " + text);
}

void Process::forget_heard(diwarp::QpType type) {
  for (Remote& remote : remotes) remote.heard[index_of(type)] = {};
}

}  // namespace soak
