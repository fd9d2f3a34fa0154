// SPDX-License-Identifier: Apache-2.0
#include "fuzz/verbs_scene.h"

namespace diwarp::fuzz {

VerbsScene::VerbsScene(Input& in)
    : run_(in),
      creation_(run_),
      completions_(run_),
      states_(run_, completions_),
      requests_(run_, registered_) {}

VerbsScene::~VerbsScene() = default;

void VerbsScene::act() {
  VerbsQp* const which = run_.pick(run_.slots.qps);
  if (which == nullptr) return creation_.create();
  switch (run_.in.below(16)) {
    case 0:
      return creation_.create();
    case 1:
      return destroy();
    case 2:
    case 3:
      return which->srq ? requests_.post_receive(*which->srq) : requests_.post_receive(*which);
    case 4:
    case 5:
    case 6:
    case 7:
      return requests_.post_send(*which);
    case 8:
      return requests_.post_batch(*which);
    case 9:
      return states_.change_state(*which);
    case 10: {
      VerbsQp* const other = run_.pick(run_.slots.qps);
      return other != nullptr && other != which ? states_.join(*which, *other) : void();
    }
    case 11:
      return run_.hosts.pass_time(run_.in);
    case 12:
      return run_.hosts.settle();
    case 13:
      return states_.query(*which);
    case 14:
      return completions_.listen_to_events();
    default: {
      VerbsCq* const cq = run_.pick(run_.slots.cqs);
      if (cq != nullptr) completions_.poll(*cq, 1 + run_.in.below(8));
    }
  }
}

// --- Destruction: in any order.

void VerbsScene::destroy() {
  const unsigned which = run_.in.u8();
  const size_t slot = (which >> 4U) % VerbsSlots::kSlots;
  switch (which & 7U) {
    case 0:
      return run_.slots.cqs[slot].reset();
    case 1:
      return run_.slots.regions[slot].reset();
    case 2:
      return run_.slots.windows[slot].reset();
    case 3:
      return run_.slots.fast[slot].reset();
    case 4:
      return run_.slots.srqs[slot].reset();
    case 5:
      return run_.slots.domains[slot].reset();
    case 6:
      return run_.slots.domains[slot] ? run_.slots.domains[slot]->deregister() : void();
    default:
      return run_.slots.qps[(which >> 4U) % VerbsSlots::kQueuePairs].reset();
  }
}

void VerbsScene::finish() {
  for (const auto& which : run_.slots.qps) {
    if (!which) continue;
    which->qp->modify(QpState::error);
    states_.check_flushed(*which);
  }
  const bool forwards = run_.in.flag();
  for (size_t i = 0; i < VerbsSlots::kQueuePairs; ++i)
    run_.slots.qps[forwards ? i : VerbsSlots::kQueuePairs - 1 - i].reset();
  run_.hosts.settle();
  completions_.poll_all();
  registered_.check_unchanged("memory that was registered for Reads was written");
}

}  // namespace diwarp::fuzz
