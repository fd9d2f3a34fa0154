// SPDX-License-Identifier: Apache-2.0
#include "ends.h"

#include <string>

#include "wire.h"

namespace diwarp::explore {

namespace {

constexpr Duration kPause = std::chrono::seconds(3);

}  // namespace

Ends::Ends(Testbed& bed, const Scenario& scenario, Ledger& ledger, const Trace& trace)
    : bed_(bed),
      scenario_(scenario),
      ledger_(ledger),
      trace_(trace),
      ends_{End(bed.devices[0], scenario, ledger, 0), End(bed.devices[1], scenario, ledger, 1)} {
  for (size_t side = 0; side < kSides; ++side) to_post_[side] = scenario.operations[side].size();
}

void Ends::settle() {
  bed_.settle();
  for (size_t side = 0; side < kSides; ++side)
    if (!ends_[side].drain()) recover(side);
}

/// The acts of an application whose queue pair is in the error state.
void Ends::recover(size_t side) {
  trace_.tell(std::string("queue pair ") + name_of_side(side) + " is in the error state");
  if (!ledger_.expects_error(side))
    ledger_.violation(std::string("the queue pair of ") + name_of_side(side) +
                      " went to the error state for no reason");
  ends_[side].drain();
  ledger_.flushed(side);
  restart(side, EventKind::reset);
}

bool Ends::nothing_put_off() const {
  return to_post_[0] + to_post_[1] == 0 && has_receives_[0] && has_receives_[1];
}

void Ends::perform(const Event& event) {
  if (event.kind == EventKind::post)
    post(event.side, event.operation);
  else if (event.kind == EventKind::receives)
    post_receives(event.side);
  else
    apply(event);
}

void Ends::post(size_t side, size_t operation) {
  --to_post_[side];
  ends_[side].post(operation, ends_[other(side)]);
}

void Ends::post_receives(size_t side) {
  has_receives_[side] = true;
  ends_[side].post_receives(End::kReceives);
}

void Ends::apply(const Event& event) {
  const bool restarts = event.kind == EventKind::reset || event.kind == EventKind::anew;
  if (restarts) return restart(event.side, event.kind);
  ledger_.happened(event);
  if (event.kind == EventKind::gone) ends_[other(event.side)].deregister_target(event.operation);
  if (event.kind == EventKind::invalidate)
    ends_[other(event.side)].invalidate_target(event.operation);
  if (event.kind == EventKind::source) ends_[event.side].deregister_buffer(event.operation);
  if (event.kind == EventKind::pause) bed_.clock.advance(kPause);
  using Known = Wire::Known;
  if (event.kind == EventKind::narrow) bed_.wire.narrow(kNarrowSegment, Known::limit);
  if (event.kind == EventKind::untold) bed_.wire.narrow(kNarrowSegment, Known::refusal);
  if (event.kind == EventKind::hole) bed_.wire.narrow(kNarrowSegment, Known::nothing);
}

void Ends::restart(size_t side, EventKind kind) {
  ledger_.happened({kind, side});
  if (kind == EventKind::anew)
    ends_[side].make_anew();
  else
    ends_[side].reset();
  if (has_receives_[side]) ends_[side].post_receives(End::kReceives);
}

}  // namespace diwarp::explore
