// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cm_events.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

namespace diwarp::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr int kQuietSteps = 4;    // what went over loopback has come by then
constexpr Duration kStep = 25us;  // the control path moves once in 20 us

/// Without a system call, which would take longer.
void wait_a_step() {
  const auto end = std::chrono::steady_clock::now() + kStep;
  while (std::chrono::steady_clock::now() < end) continue;
}

}  // namespace

void CmEvents::settle() {
  for (int quiet = 0; quiet < kQuietSteps;) {
    size_t work = 0;
    for (Device& device : run_.devices) work += device.progress();
    quiet = take_events() || work != 0 ? 0 : quiet + 1;
    wait_a_step();
  }
}

bool CmEvents::take_events() {
  bool any = false;
  for (size_t channel = 0; channel < CmRun::kDevices; ++channel) {
    while (std::optional<CmEvent> event = run_.channels[channel]->get_event(Duration(0))) {
      any = true;
      take_event(channel, std::move(*event));
    }
  }
  return any;
}

void CmEvents::take_event(size_t channel, CmEvent event) {
  check_private_data(event);
  if (event.type == CmEventType::connect_request) return take_request(channel, event);
  CmEntry* const entry = run_.entry_of(event.id);
  require(entry != nullptr, "an event came for an id that is gone");
  require(entry->channel == channel && !entry->model.deaf(), "an event came by another channel");
  entry->model.take(event);
}

void CmEvents::take_request(size_t channel, CmEvent& event) {
  CmEntry* const listener = run_.entry_of(event.listener);
  require(listener != nullptr && listener->model.stage() == CmModel::Stage::listening,
          "a request came for an id that does not listen");
  require(listener->channel == channel, "a request came by another channel");
  require(event.request && event.request->number() == event.id, "a request has no id");
  require(run_.entry_of(event.id) == nullptr, "a request has the number of another id");
  const auto place = std::ranges::find_if(run_.ids, [](const auto& entry) { return !entry; });
  if (place == run_.ids.end()) return;  // rejected
  *place = std::make_unique<CmEntry>(CmEntry{
      std::move(*event.request), CmModel(event.id, event.context, CmModel::Stage::requested),
      listener->device, channel});
}

void CmEvents::check_private_data(const CmEvent& event) const {
  const bool known = std::ranges::find(run_.said, event.private_data) != run_.said.end();
  require(known || run_.stranger_spoke, "private data came that nobody sent");
}

}  // namespace diwarp::fuzz
