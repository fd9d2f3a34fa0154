// SPDX-License-Identifier: Apache-2.0
#include "probes.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace diwarp::explore {

namespace {

/// Read Requests that may be unanswered in an association (docs/wire-format.md).
constexpr size_t kReadPlaces = 16;

}  // namespace

void Probes::open() {
  for (size_t side = 0; side < kSides; ++side) ends_[side].post_receives(1);
  for (size_t side = 0; side < kSides; ++side) ends_[side].probe_send(ends_[other(side)]);
  const auto done = [&] { return ends_.pending() == 0; };
  if (!ends_.wait_until(done)) ledger_.violation("the association did not open");
}

void Probes::greet() {
  trace_.tell("greetings");
  bed_.wire.hold(false);
  for (int round = 0; round < 2; ++round) {
    for (size_t side = 0; side < kSides; ++side) {
      ends_[side].probe_read(ends_[other(side)]);
      ends_.wait_until([&] { return ends_[side].pending() == 0; });
    }
    if (!ends_[0].take_restarted() && !ends_[1].take_restarted()) return;
  }
  ledger_.violation("afterwards, a peer restarted that had not");
}

void Probes::probe() {
  trace_.tell("probes");
  probe_receives();
  for (size_t side = 0; side < kSides && ledger_.violations().empty(); ++side) probe_places(side);
}

/// Uses all receives that are left.
void Probes::probe_receives() {
  for (size_t side = 0; side < kSides; ++side)
    for (size_t left = ends_[other(side)].receives_left(); left > 0; --left)
      ends_[side].probe_send(ends_[other(side)]);
  const auto done = [&] { return ends_.pending() == 0; };
  if (!ends_.wait_until(done)) return ledger_.violation("afterwards, a Send never ended");
  for (size_t side = 0; side < kSides; ++side)
    if (ends_[side].receives_left() != 0)
      ledger_.violation(std::string("afterwards, ") + name_of_side(side) + " has a receive left");
}

/// How many Read Requests of `side` can be unanswered. Its peer cannot answer, for its Sends fill
/// the window of `side`, which has no receives.
void Probes::probe_places(size_t side) {
  End& reader = ends_[side];
  End& target = ends_[other(side)];
  for (uint32_t i = 0; i < scenario_.window; ++i) target.probe_send(reader);
  ends_.settle();
  bed_.wire.clear_sizes();
  for (size_t i = 0; i <= kReadPlaces; ++i) reader.probe_read(target);
  // They are the longest of what a side sends that only reads, and acknowledges. The pacer may hold
  // the first one back.
  const std::vector<size_t>& sizes = bed_.wire.sizes(side);
  const auto requests = [&] {
    const auto longest = std::ranges::max_element(sizes);
    return longest == sizes.end() ? 0 : static_cast<size_t>(std::ranges::count(sizes, *longest));
  };
  ends_.wait_until([&] { return requests() >= kReadPlaces; });
  if (requests() != kReadPlaces)
    ledger_.violation(std::string("afterwards, ") + name_of_side(side) + " has " +
                      std::to_string(requests()) + " of its places for Read Requests");
  reader.post_receives(scenario_.window);
  const auto done = [&] { return reader.pending() + target.pending() == 0; };
  if (!ends_.wait_until(done)) ledger_.violation("afterwards, a Read or Send never ended");
}

}  // namespace diwarp::explore
