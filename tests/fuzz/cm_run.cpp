// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cm_run.h"

#include <algorithm>
#include <string>

namespace diwarp::fuzz {
namespace {

Device open_device(size_t index) {
  return Device::open("127.0.0." + std::to_string(index + 1),
                      {.progress = Progress::manual, .io = IoBackend::syscall});
}

}  // namespace

CmParty::CmParty(const Device& host, size_t on, QpType type)
    : device(on),
      pd(host),
      cq(host, 8),
      qp(pd, {.type = type, .send_cq = cq, .recv_cq = cq, .capacity = {4, 4}}) {}

CmRun::CmRun(Input& input) : in(input), said(1) {
  for (size_t i = 0; i < kDevices; ++i) {
    devices.push_back(open_device(i));
    channels[i].emplace();
  }
}

CmEntry* CmRun::entry_of(uint64_t number) {
  const auto found = std::ranges::find_if(
      ids, [&](const auto& entry) { return entry && entry->model.number() == number; });
  return found == ids.end() ? nullptr : found->get();
}

Address CmRun::any_address() {
  CmEntry* const entry = ids[in.below(kIds)].get();
  if (entry != nullptr && entry->model.stage() == CmModel::Stage::listening)
    return entry->id.local_address();
  static constexpr std::array<const char*, 4> kOthers{"127.0.0.1:1", "[::1]:5", "127.0.0.2:0",
                                                      "198.51.100.1:5"};
  return Address::parse(kOthers[in.below(kOthers.size())]);
}

void CmRun::destroy(size_t slot) {
  const CmModel model = ids[slot]->model;
  const std::optional<size_t> place = ids[slot]->queue_pair;
  ids[slot].reset();
  if (model.deaf() || model.stage() != CmModel::Stage::established) return;
  require(parties[*place]->qp.state() == QpState::error, "an id went and left its connection open");
}

}  // namespace diwarp::fuzz
