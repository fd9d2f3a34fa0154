// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cm_scene.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "fuzz/verbs_calls.h"

namespace diwarp::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 20s;  // of the end: an attempt's timeout is 10 s at most

}  // namespace

CmScene::CmScene(Input& in) : run_(in), calls_(run_), events_(run_), strangers_(run_) {}

CmScene::~CmScene() = default;

void CmScene::act() {
  const size_t slot = run_.in.below(CmRun::kIds);
  CmEntry* const entry = run_.ids[slot].get();
  const uint32_t what = run_.in.below(16);
  if (what == 0) {
    change_party();
  } else if (what == 1) {
    strangers_.act();
  } else if (what == 2 && run_.in.below(8) == 0) {
    close_channel();
  } else if (entry == nullptr) {
    calls_.create(slot);
  } else if (what == 3) {
    run_.destroy(slot);
  } else if (what == 4) {
    calls_.move(slot);
  } else {
    calls_.make(static_cast<CmModel::Call>(what % 8), *entry);
  }
  events_.settle();
}

void CmScene::change_party() {
  const size_t place = run_.in.below(CmRun::kQueuePairs);
  std::unique_ptr<CmParty>& party = run_.parties[place];
  if (!party) {
    const size_t device = run_.in.below(CmRun::kDevices);
    const QpType type = run_.in.below(8) == 0 ? QpType::ud : QpType::rc;
    party = std::make_unique<CmParty>(run_.devices[device], device, type);
    return;
  }
  switch (run_.in.below(4)) {
    case 0:
      party.reset();
      return end_party(place, true);
    case 1:
      party->qp.modify(QpState::error);
      return end_party(place, false);
    case 2:
      party->qp.modify(QpState::reset);
      party->qp.modify(QpState::init);
      return end_party(place, false);
    default:
      accepted([&] { party->qp.modify(run_.in.flag() ? QpState::sqd : QpState::rts); });
  }
}

/// A connection ends with its queue pair, and that is told at once.
void CmScene::end_party(size_t place, bool destroyed) {
  std::vector<uint64_t> ended;
  for (const auto& entry : run_.ids) {
    if (!entry || entry->queue_pair != place) continue;
    if (entry->model.stage() == Stage::established) ended.push_back(entry->model.number());
    if (destroyed) entry->queue_pair.reset();
  }
  events_.settle();
  for (const uint64_t number : ended) {
    const CmEntry* const entry = run_.entry_of(number);
    require(entry->model.deaf() || entry->model.stage() == Stage::over,
            "a connection lost its queue pair, and nothing was told");
  }
}

void CmScene::close_channel() {
  const size_t channel = run_.in.below(CmRun::kDevices);
  for (const auto& entry : run_.ids)
    if (entry && entry->channel == channel) entry->model.become_deaf();
  run_.channels[channel].emplace();
}

void CmScene::finish() {
  strangers_.leave();
  for (auto& entry : run_.ids) {
    const bool answers = entry && (entry->model.stage() == Stage::listening ||
                                   entry->model.stage() == Stage::requested);
    if (answers) entry.reset();
  }
  wait_for_outcomes();
  for (size_t place = 0; place < CmRun::kQueuePairs; ++place) {
    if (!run_.parties[place]) continue;
    run_.parties[place]->qp.modify(QpState::error);
    end_party(place, false);
  }
  drop_all();
}

/// Nobody listens or answers any more.
void CmScene::wait_for_outcomes() {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  const auto waits = [this] {
    return std::ranges::any_of(run_.ids,
                               [](const auto& entry) { return entry && entry->model.waits(); });
  };
  events_.settle();
  while (waits()) {
    require(std::chrono::steady_clock::now() < end, "an attempt to connect has no outcome");
    events_.settle();
  }
}

void CmScene::drop_all() {
  const bool ids_first = run_.in.flag();
  for (int half = 0; half < 2; ++half) {
    if ((half == 0) == ids_first)
      for (auto& entry : run_.ids) entry.reset();
    else
      for (auto& party : run_.parties) party.reset();
    events_.settle();
  }
}

}  // namespace diwarp::fuzz
