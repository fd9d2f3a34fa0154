// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <vector>

#include "base/random.h"
#include "ddp/stag_table.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

constexpr uint32_t kDomain = 5;
constexpr uint32_t kQueuePair = 77;
constexpr Access kAll = Access::local_write | Access::remote_write | Access::remote_read |
                        Access::remote_atomic | Access::window_bind;
constexpr Access kRemote = Access::remote_write | Access::remote_read | Access::remote_atomic;

/// A table with one region of 100 bytes and one window.
struct Fixture {
  std::array<std::byte, 100> memory{};
  Random random{7};
  int quiesced = 0;
  STagTable table{[this] { ++quiesced; }, [this] { return static_cast<uint32_t>(random.next()); }};
  STag region = add(EntryKind::region, kAll);
  STag window = add(EntryKind::window, Access::none);

  STag add(EntryKind kind, Access access, uint32_t domain = kDomain) {
    return table.insert({.protection_domain = domain,
                         .access = access,
                         .memory = kind == EntryKind::region ? memory.data() : nullptr,
                         .base = 1000,
                         .length = kind == EntryKind::region ? memory.size() : 0,
                         .kind = kind});
  }

  MemoryBinding binding(size_t offset = 10, uint64_t length = 20, Access access = kRemote) {
    return {.stag = window,
            .region = region,
            .address = memory.data() + offset,
            .length = length,
            .access = access,
            .base = 5000};
  }
  RegionFault bind(const MemoryBinding& wanted) { return table.bind(wanted, kDomain, kQueuePair); }
  RegionFault invalidate(STag stag, bool by_peer = false) {
    return table.invalidate(stag, kDomain, kQueuePair, by_peer);
  }
  RegionFault use(STag stag, uint64_t offset, uint64_t length, Access want = Access::remote_write) {
    return check_tagged(table.find(stag), kDomain, kQueuePair, want, offset, length);
  }
};

}  // namespace

TEST_CASE("a window is invalid until it is bound and opens exactly what it is bound to") {
  Fixture f;
  REQUIRE(f.table.find(f.window) != nullptr);
  CHECK(f.use(f.window, 5000, 1) == RegionFault::invalid);
  CHECK(f.bind(f.binding()) == RegionFault::none);
  const Region* bound = f.table.find(f.window);
  REQUIRE(bound != nullptr);
  CHECK(bound->valid);
  CHECK(bound->memory == f.memory.data() + 10);
  CHECK(bound->parent == f.region);
  CHECK(bound->qp_number == kQueuePair);
  CHECK(bound->access == kRemote);
  CHECK(f.use(f.window, 5000, 20) == RegionFault::none);
  CHECK(f.use(f.window, 5000, 21) == RegionFault::bounds);
  CHECK(f.use(f.window, 4999, 1) == RegionFault::bounds);
  CHECK(f.use(f.window, 5020, 1) == RegionFault::bounds);
}

TEST_CASE("a bound window grants what it was bound with and no local rights") {
  Fixture f;
  CHECK(f.bind(f.binding(0, 10, Access::remote_read | Access::local_write)) == RegionFault::none);
  CHECK(f.use(f.window, 5000, 1, Access::remote_read) == RegionFault::none);
  CHECK(f.use(f.window, 5000, 1, Access::remote_write) == RegionFault::access);
  CHECK(f.use(f.window, 5000, 1, Access::local_write) == RegionFault::access);
  const Sge sge{f.memory.data(), 1, f.window};
  CHECK(check_local(f.table.find(f.window), kDomain, Access::none, sge) == RegionFault::access);
}

TEST_CASE("binding gives the window a new key and the old STag names nothing") {
  Fixture f;
  MemoryBinding binding = f.binding();
  const STag old = f.window;
  binding.stag = old ^ 0x5A;
  CHECK(f.bind(binding) == RegionFault::none);
  CHECK(f.table.find(old) == nullptr);
  CHECK(f.use(binding.stag, 5000, 1) == RegionFault::none);
  CHECK(f.invalidate(old) == RegionFault::unknown_stag);
  CHECK(f.use(binding.stag, 5000, 1) == RegionFault::none);
  CHECK(f.invalidate(binding.stag) == RegionFault::none);
  CHECK(f.use(binding.stag, 5000, 1) == RegionFault::invalid);
  CHECK(f.table.erase(old));
  CHECK(f.table.find(binding.stag) == nullptr);
}

TEST_CASE("only bytes inside the region can be bound") {
  Fixture f;
  CHECK(f.bind(f.binding(0, 101)) == RegionFault::bounds);
  CHECK(f.bind(f.binding(99, 2)) == RegionFault::bounds);
  CHECK(f.bind(f.binding(100, 1)) == RegionFault::bounds);
  CHECK(f.bind(f.binding(50, UINT64_MAX)) == RegionFault::bounds);
  MemoryBinding before = f.binding(0, 2);
  const auto begin = reinterpret_cast<uintptr_t>(f.memory.data());
  before.address = reinterpret_cast<void*>(begin - 1);
  CHECK(f.bind(before) == RegionFault::bounds);
  MemoryBinding wraps = f.binding(0, 10);
  wraps.base = UINT64_MAX - 8;
  CHECK(f.bind(wraps) == RegionFault::wrap);
  CHECK_FALSE(f.table.find(f.window)->valid);
  wraps.base = UINT64_MAX - 9;
  CHECK(f.bind(wraps) == RegionFault::none);
  CHECK(f.invalidate(f.window) == RegionFault::none);
  CHECK(f.bind(f.binding(0, 100)) == RegionFault::none);
}

TEST_CASE("the region and the protection domain say which window may be bound") {
  Fixture f;
  MemoryBinding binding = f.binding();
  CHECK(f.table.bind(binding, kDomain + 1, kQueuePair) == RegionFault::wrong_domain);
  binding.region = f.region ^ 1;
  CHECK(f.bind(binding) == RegionFault::unknown_stag);
  binding.region = f.window;
  CHECK(f.bind(binding) == RegionFault::invalid);
  binding.region = f.add(EntryKind::region, kRemote | Access::local_write);
  CHECK(f.bind(binding) == RegionFault::access);
  binding.region = f.add(EntryKind::region, kAll, kDomain + 1);
  CHECK(f.bind(binding) == RegionFault::wrong_domain);
  binding.region = f.add(EntryKind::region, Access::window_bind);
  CHECK(f.bind(binding) == RegionFault::access);
  binding.access = Access::remote_atomic;
  CHECK(f.bind(binding) == RegionFault::access);
  binding.access = Access::remote_read;
  CHECK(f.bind(binding) == RegionFault::none);
}

TEST_CASE("a region cannot be bound and an unknown window neither") {
  Fixture f;
  MemoryBinding binding = f.binding();
  binding.stag = f.region;
  CHECK(f.bind(binding) == RegionFault::unknown_stag);
  binding.stag = f.window ^ 0x100;
  CHECK(f.bind(binding) == RegionFault::unknown_stag);
  binding.stag = 5;
  CHECK(f.bind(binding) == RegionFault::unknown_stag);
}

TEST_CASE("a region that was invalidated cannot be bound") {
  Fixture f;
  CHECK(f.invalidate(f.region) == RegionFault::none);
  CHECK(f.use(f.region, 1000, 1) == RegionFault::invalid);
  CHECK(f.bind(f.binding()) == RegionFault::invalid);
}

TEST_CASE("a valid window is not bound again before it is invalidated") {
  Fixture f;
  CHECK(f.bind(f.binding()) == RegionFault::none);
  CHECK(f.bind(f.binding(0, 1)) == RegionFault::in_use);
  CHECK(f.use(f.window, 5000, 20) == RegionFault::none);
  CHECK(f.invalidate(f.window) == RegionFault::none);
  CHECK(f.bind(f.binding(0, 1)) == RegionFault::none);
  CHECK(f.use(f.window, 5000, 2) == RegionFault::bounds);
}

TEST_CASE("binding no bytes unbinds") {
  Fixture f;
  CHECK(f.bind(f.binding()) == RegionFault::none);
  CHECK(f.bind(f.binding(0, 0)) == RegionFault::none);
  CHECK(f.use(f.window, 5000, 0) == RegionFault::invalid);
  CHECK(f.invalidate(f.region) == RegionFault::none);  // nothing is bound to it
}

TEST_CASE("a window of another queue pair is neither used nor changed") {
  Fixture f;
  CHECK(f.bind(f.binding()) == RegionFault::none);
  const Region* window = f.table.find(f.window);
  CHECK(check_tagged(window, kDomain, kQueuePair + 1, Access::remote_read, 5000, 1) ==
        RegionFault::wrong_queue_pair);
  CHECK(f.table.invalidate(f.window, kDomain, kQueuePair + 1, false) ==
        RegionFault::wrong_queue_pair);
  CHECK(f.table.invalidate(f.window, kDomain, kQueuePair + 1, true) ==
        RegionFault::wrong_queue_pair);
  CHECK(f.table.invalidate(f.window, kDomain + 1, kQueuePair, true) == RegionFault::wrong_domain);
  CHECK(f.table.bind(f.binding(0, 0), kDomain, kQueuePair + 1) == RegionFault::wrong_queue_pair);
  CHECK(f.use(f.window, 5000, 20) == RegionFault::none);
  CHECK(f.invalidate(f.window) == RegionFault::none);
  CHECK(f.table.bind(f.binding(), kDomain, kQueuePair + 1) == RegionFault::none);
}

TEST_CASE("a peer may invalidate windows, and regions that allow it") {
  Fixture f;
  CHECK(f.bind(f.binding()) == RegionFault::none);
  CHECK(f.invalidate(f.window, true) == RegionFault::none);
  CHECK(f.use(f.window, 5000, 1) == RegionFault::invalid);
  CHECK(f.invalidate(f.region, true) == RegionFault::access);
  CHECK(f.use(f.region, 1000, 1) == RegionFault::none);
  const STag open = f.add(EntryKind::region, kAll | Access::remote_invalidate);
  CHECK(f.table.invalidate(open, kDomain + 1, kQueuePair, true) == RegionFault::wrong_domain);
  CHECK(f.use(open, 1000, 1) == RegionFault::none);
  CHECK(f.invalidate(open, true) == RegionFault::none);
  CHECK(f.use(open, 1000, 1) == RegionFault::invalid);
}

TEST_CASE("invalidating twice is no fault and frees nothing twice") {
  Fixture f;
  CHECK(f.bind(f.binding()) == RegionFault::none);
  CHECK(f.invalidate(f.window) == RegionFault::none);
  CHECK(f.invalidate(f.window) == RegionFault::none);
  CHECK(f.bind(f.binding()) == RegionFault::none);
  CHECK(f.invalidate(f.region) == RegionFault::in_use);
}

TEST_CASE("a region with bound windows cannot be invalidated") {
  Fixture f;
  const STag other = f.add(EntryKind::window, Access::none);
  CHECK(f.bind(f.binding()) == RegionFault::none);
  MemoryBinding second = f.binding(0, 5);
  second.stag = other;
  CHECK(f.bind(second) == RegionFault::none);
  CHECK(f.invalidate(f.region) == RegionFault::in_use);
  CHECK(f.invalidate(f.window) == RegionFault::none);
  CHECK(f.invalidate(f.region) == RegionFault::in_use);
  CHECK(f.use(f.region, 1000, 1) == RegionFault::none);
  CHECK(f.table.erase(other));  // an erased window is bound no longer
  CHECK(f.invalidate(f.region) == RegionFault::none);
}

TEST_CASE("a window dies with its region, from the moment that is unpublished") {
  std::array<std::byte, 100> memory{};
  STagTable* seen = nullptr;
  STag window = 0;
  bool dead_in_quiesce = false;
  Random random(9);
  STagTable table(
      [&] {
        const Region* found = seen->find(window);
        dead_in_quiesce = found != nullptr && !found->valid;
      },
      [&] { return static_cast<uint32_t>(random.next()); });
  seen = &table;
  const STag region = table.insert({.protection_domain = kDomain,
                                    .access = kAll,
                                    .memory = memory.data(),
                                    .length = memory.size()});
  window = table.insert({.protection_domain = kDomain, .kind = EntryKind::window});
  const MemoryBinding binding{
      .stag = window, .region = region, .address = memory.data(), .length = 10, .access = kRemote};
  CHECK(table.bind(binding, kDomain, kQueuePair) == RegionFault::none);
  CHECK(table.find(window)->valid);
  CHECK(table.erase(region));
  CHECK(dead_in_quiesce);
  CHECK_FALSE(table.find(window)->valid);
  CHECK(table.erase(window));
}

TEST_CASE("a region that got the index of an erased one does not revive its windows") {
  std::array<std::byte, 100> memory{};
  uint32_t next = 0x100;
  STagTable table([] {}, [&] { return next; });
  const Region whole{.protection_domain = kDomain,
                     .access = kAll,
                     .memory = memory.data(),
                     .length = memory.size()};
  const STag first = table.insert(whole);
  next = 0x200;
  const STag window = table.insert({.protection_domain = kDomain, .kind = EntryKind::window});
  const MemoryBinding binding{
      .stag = window, .region = first, .address = memory.data(), .length = 10, .access = kRemote};
  CHECK(table.bind(binding, kDomain, kQueuePair) == RegionFault::none);
  CHECK(table.erase(first));
  next = 0x100;
  const STag second = table.insert(whole);
  REQUIRE(second == first);
  CHECK_FALSE(table.find(window)->valid);
  CHECK(table.invalidate(second, kDomain, kQueuePair, false) == RegionFault::none);
}

TEST_CASE("a window of another protection domain is not bound, whatever the region") {
  Fixture f;
  MemoryBinding binding = f.binding();
  binding.stag = f.add(EntryKind::window, Access::none, kDomain + 1);
  CHECK(f.bind(binding) == RegionFault::wrong_domain);
  binding.length = 0;
  CHECK(f.bind(binding) == RegionFault::wrong_domain);
}

TEST_CASE("an erased window of an erased region is not missed at the region that took its index") {
  std::array<std::byte, 100> memory{};
  uint32_t next = 0x100;
  STagTable table([] {}, [&] { return next; });
  const auto region = [&] {
    next = 0x100;
    return table.insert({.protection_domain = kDomain,
                         .access = kAll,
                         .memory = memory.data(),
                         .length = memory.size()});
  };
  const auto bound_window = [&](uint32_t stag, STag to) {
    next = stag;
    table.insert({.protection_domain = kDomain, .kind = EntryKind::window});
    const MemoryBinding binding{
        .stag = stag, .region = to, .address = memory.data(), .length = 10, .access = kRemote};
    CHECK(table.bind(binding, kDomain, kQueuePair) == RegionFault::none);
  };
  bound_window(0x200, region());
  CHECK(table.erase(0x100));
  const STag second = region();
  bound_window(0x300, second);
  CHECK(table.erase(0x200));  // was bound to the first
  CHECK(table.invalidate(second, kDomain, kQueuePair, false) == RegionFault::in_use);
}

TEST_CASE("binding and invalidating for ever leaves the counts right") {
  Fixture f;
  Random random(3);
  std::vector<STag> windows{f.window};
  for (int i = 0; i < 9; ++i) windows.push_back(f.add(EntryKind::window, Access::none));
  std::vector<bool> bound(windows.size(), false);
  for (int step = 0; step < 20000; ++step) {
    const size_t i = random.below(windows.size());
    if (bound[i]) {
      const bool unbind = random.chance(0.5);
      MemoryBinding nothing = f.binding(0, 0);
      nothing.stag = windows[i];
      REQUIRE((unbind ? f.bind(nothing) : f.invalidate(windows[i])) == RegionFault::none);
    } else {
      MemoryBinding some = f.binding(random.below(80), 1 + random.below(20));
      some.stag = windows[i];
      REQUIRE(f.bind(some) == RegionFault::none);
    }
    bound[i] = !bound[i];
  }
  for (size_t i = 0; i < windows.size(); ++i) {
    CHECK(f.table.find(windows[i])->valid == bound[i]);
    CHECK(f.invalidate(windows[i]) == RegionFault::none);
  }
  CHECK(f.invalidate(f.region) == RegionFault::none);
}

TEST_CASE("the observer is told of each region that is invalidated, once, and of nothing else") {
  Fixture f;
  std::vector<STag> told;
  f.table.observe_invalidations([&told](STag stag) { told.push_back(stag); });
  const STag other = f.add(EntryKind::region, kAll, kDomain + 1);
  CHECK(f.invalidate(other) == RegionFault::wrong_domain);
  CHECK(f.bind(f.binding()) == RegionFault::none);
  CHECK(f.invalidate(f.window) == RegionFault::none);
  CHECK(told.empty());
  CHECK(f.invalidate(f.region) == RegionFault::none);
  CHECK(f.invalidate(f.region) == RegionFault::none);
  CHECK(told == std::vector<STag>{f.region});
}

TEST_CASE(
    "a region that is revoked is invalid, and so are its windows, and the observer is not told") {
  Fixture f;
  bool told = false;
  f.table.observe_invalidations([&told](STag) { told = true; });
  CHECK(f.bind(f.binding()) == RegionFault::none);
  f.table.revoke(f.region);
  CHECK(f.use(f.region, 1000, 1) == RegionFault::invalid);
  CHECK(f.use(f.window, 5000, 1) == RegionFault::invalid);
  CHECK_FALSE(told);
  CHECK(f.table.erase(f.region));
  f.table.revoke(f.region);  // which is gone
}
