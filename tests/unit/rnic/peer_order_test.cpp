// SPDX-License-Identifier: Apache-2.0
#include "rnic/queues/peer_order.h"

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/random.h"
#include "support/catch.h"

using namespace diwarp;
using rnic::PeerOrder;

namespace {

constexpr uint32_t kDepth = 16;

Address peer(uint32_t number) {
  return Address::parse("192.0.2." + std::to_string(number + 1) + ":7471");
}

PeerOrder made() {
  PeerOrder order;
  REQUIRE(order.take_memory(kDepth));
  return order;
}

/// The requests that are reportable, and then are not any more.
std::vector<uint32_t> taken(PeerOrder& order) {
  std::vector<uint32_t> slots;
  while (const std::optional<uint32_t> slot = order.front()) {
    slots.push_back(*slot);
    order.pop_front();
  }
  return slots;
}

using Slots = std::vector<uint32_t>;

}  // namespace

TEST_CASE("peer order: requests to one peer are reported as they were added") {
  PeerOrder order = made();
  for (const uint32_t slot : {3u, 1u, 2u}) order.add(slot, peer(0));
  order.set_done(1);
  order.set_done(2);
  CHECK(taken(order).empty());
  order.set_done(3);
  CHECK(taken(order) == Slots{3, 1, 2});
}

TEST_CASE("peer order: requests to different peers do not wait for each other") {
  PeerOrder order = made();
  for (uint32_t slot = 0; slot < kDepth; ++slot) order.add(slot, peer(slot % 8));
  for (uint32_t slot = 1; slot < kDepth; ++slot)
    if (slot % 8 != 0) order.set_done(slot);
  CHECK(taken(order).size() == kDepth - 2);
  order.set_done(8);
  CHECK(taken(order).empty());
  order.set_done(0);
  CHECK(taken(order) == Slots{0, 8});
}

TEST_CASE("peer order: one host's ports are different peers") {
  PeerOrder order = made();
  order.add(0, peer(0));
  order.add(1, peer(0).with_port(7472));
  order.set_done(1);
  CHECK(taken(order) == Slots{1});
}

TEST_CASE("peer order: after clear() a slot that was waiting holds up nothing") {
  PeerOrder order = made();
  order.add(0, peer(0));
  order.add(1, peer(1));
  order.set_done(1);
  order.clear();
  CHECK_FALSE(order.is_waiting(0));
  order.add(2, peer(0));
  order.set_done(2);
  CHECK(taken(order) == Slots{2});
}

TEST_CASE("peer order: any sequence of requests agrees with a list for each peer") {
  Random random(19);
  PeerOrder order = made();
  std::map<uint32_t, std::deque<uint32_t>> lists;  // of peers; slots that are not reported
  std::map<uint32_t, uint32_t> peer_of;            // of slots
  std::map<uint32_t, bool> done;
  Slots free;
  for (uint32_t slot = 0; slot < kDepth; ++slot) free.push_back(slot);
  for (int step = 0; step < 20000; ++step) {
    if (!free.empty() && random.below(2) == 0) {
      const size_t at = random.below(free.size());
      const uint32_t slot = free[at];
      free.erase(free.begin() + static_cast<ptrdiff_t>(at));
      peer_of[slot] = static_cast<uint32_t>(random.below(6));
      done[slot] = false;
      lists[peer_of[slot]].push_back(slot);
      order.add(slot, peer(peer_of[slot]));
      REQUIRE(order.is_waiting(slot));
      continue;
    }
    Slots waiting;
    for (const auto& [slot, is_done] : done)
      if (!is_done) waiting.push_back(slot);
    if (waiting.empty()) continue;
    const uint32_t slot = waiting[random.below(waiting.size())];
    done[slot] = true;
    order.set_done(slot);
    Slots expected;
    std::deque<uint32_t>& list = lists[peer_of[slot]];
    while (!list.empty() && done[list.front()]) {
      expected.push_back(list.front());
      done.erase(list.front());
      free.push_back(list.front());
      list.pop_front();
    }
    REQUIRE(taken(order) == expected);
  }
}
