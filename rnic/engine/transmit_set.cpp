// SPDX-License-Identifier: Apache-2.0
#include "rnic/engine/transmit_set.h"

#include <utility>

namespace diwarp::rnic {

TransmitSet::TransmitSet(EngineInbox& inbox, InputSet& inputs,
                         std::unique_ptr<TransmitScheduler> scheduler)
    : inbox_(inbox),
      inputs_(inputs),
      scheduler_(scheduler ? std::move(scheduler) : std::make_unique<RoundRobin>()),
      lone_passes_(scheduler_->lets_lone_source_pass()) {}

// --- A step.

size_t TransmitSet::take_inbox() {
  // guard(completion): without while (TransmitSource* source = stalled_.front()) activate(*source);
  if (inbox_.take_unstall())
    while (TransmitSource* source = stalled_.front()) activate(*source);
  return inbox_.take_sources([this](TransmitSource& source) { activate(source); });
}

size_t TransmitSet::serve_round(Time now) {
  size_t work = 0;
  TransmitSource* source = scheduler_->begin_round();
  while (source != nullptr) {
    --in_line_;
    source->place_ = TransmitSource::Place::none;
    const size_t moved = serve(*source, now);
    work += moved;
    source = scheduler_->next(*source, moved);
  }
  return work;
}

size_t TransmitSet::serve(TransmitSource& source, Time now) {
  const Served served = source.transmit(now);
  if (!source.attached_) return served.work;
  if (served.work != 0 && source.input_ != nullptr) inputs_.expect_input(*source.input_);
  const bool waits_for_link = served.pending == Pending::writable && source.input_ != nullptr &&
                              inputs_.watch_until_writable(*source.input_);
  if (served.pending == Pending::stalled)
    stall(source);
  else if (served.pending != Pending::nothing && !waits_for_link)
    activate(source);
  return served.work;
}

void TransmitSet::stall(TransmitSource& source) {
  if (!source.attached_ || source.place_ != TransmitSource::Place::none) return;
  source.place_ = TransmitSource::Place::stalled;
  stalled_.push_back(source);
}

// --- Sources go.

void TransmitSet::detach(TransmitSource& source) {
  if (!source.attached_) return;
  take_inbox();  // it may be in there
  source.attached_ = false;
  if (source.is_scheduled()) --in_line_;
  end_stall(source);
  source.place_ = TransmitSource::Place::none;
  scheduler_->remove(source);
}

}  // namespace diwarp::rnic
