// SPDX-License-Identifier: Apache-2.0
#include "ddp/protection_context.h"

#include <array>
#include <cstdint>
#include <vector>
#include "support/catch.h"

#include "base/random.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

constexpr uint32_t kDomain = 5;
constexpr uint32_t kQueuePair = 77;
constexpr uint64_t kTop = UINT64_MAX;
constexpr Access kWritable =
    Access::local_write | Access::remote_write | Access::remote_read | Access::window_bind;

/// A table, and the context of one queue pair.
struct Fixture {
  Fixture() { context.set_queue_pair(kQueuePair); }

  STag add(size_t begin, size_t length, Access access = kWritable, uint64_t base = 0,
           uint32_t domain = kDomain) {
    return table.insert({.protection_domain = domain,
                         .access = access,
                         .memory = memory.data() + begin,
                         .base = base,
                         .length = length});
  }
  STag add_entry(EntryKind kind, uint32_t domain = kDomain) {
    return table.insert({.protection_domain = domain, .kind = kind, .max_length = 50});
  }
  Sge sge(STag lkey, size_t begin, uint32_t length) {
    return {memory.data() + begin, length, lkey};
  }
  MemoryBinding binding(STag stag, STag region, uint64_t length = 10,
                        Access access = Access::remote_write) {
    return {.stag = stag,
            .region = region,
            .address = memory.data(),
            .length = length,
            .access = access,
            .base = 500};
  }
  RegionFault tagged(STag stag, uint64_t offset, uint64_t length,
                     Access want = Access::remote_write) {
    return context.check_tagged(stag, want, offset, length).fault;
  }

  std::array<std::byte, 100> memory{};
  Random random{7};
  STagTable table{[] {}, [this] { return static_cast<uint32_t>(random.next()); }};
  ProtectionContext context{table, kDomain};
};

}  // namespace

TEST_CASE("protection: every SGE of a request is checked, also the last one") {
  Fixture f;
  const STag first = f.add(0, 50);
  const STag second = f.add(50, 50);
  std::array<Sge, 3> sges{f.sge(first, 0, 50), f.sge(second, 50, 50), f.sge(first, 49, 1)};
  CHECK(f.context.may_read(sges));
  CHECK(f.context.may_write(sges));
  for (Sge& sge : sges) {
    const Sge right = sge;
    ++sge.length;  // one byte beyond its region
    CHECK_FALSE(f.context.may_read(sges));
    CHECK_FALSE(f.context.may_write(sges));
    sge = right;
  }
}

TEST_CASE("protection: an SGE may not reach from one region into the next one in memory") {
  Fixture f;
  const STag first = f.add(0, 50);
  f.add(50, 50);
  const Sge both = f.sge(first, 40, 20);
  CHECK_FALSE(f.context.may_read({&both, 1}));
}

TEST_CASE("protection: a list without bytes names no memory, whatever its keys are") {
  Fixture f;
  const Sge none{nullptr, 0, 0xDEADBEEF};
  CHECK(f.context.may_read({}));
  CHECK(f.context.may_write({}));
  CHECK(f.context.may_read({&none, 1}));
  CHECK(f.context.may_write({&none, 1}));
}

TEST_CASE("protection: memory may be read locally without a right, and written with one") {
  Fixture f;
  const Sge readable = f.sge(f.add(0, 10, Access::none), 0, 10);
  const Sge remote = f.sge(f.add(0, 10, Access::remote_read), 0, 10);
  const Sge writable = f.sge(f.add(0, 10, Access::local_write), 0, 10);
  for (const Sge& sge : {readable, remote, writable}) CHECK(f.context.may_read({&sge, 1}));
  CHECK_FALSE(f.context.may_write({&readable, 1}));
  CHECK_FALSE(f.context.may_write({&remote, 1}));
  CHECK(f.context.may_write({&writable, 1}));
}

TEST_CASE("protection: memory of another protection domain is closed, locally and to peers") {
  Fixture f;
  const STag foreign = f.add(0, 10, kWritable, 0, kDomain + 1);
  const Sge sge = f.sge(foreign, 0, 10);
  CHECK_FALSE(f.context.may_read({&sge, 1}));
  CHECK_FALSE(f.context.may_write({&sge, 1}));
  CHECK(f.tagged(foreign, 0, 1) == RegionFault::wrong_domain);
  CHECK(f.context.invalidate(foreign) == RegionFault::wrong_domain);
  const STag window = f.add_entry(EntryKind::window);
  CHECK(f.context.bind(f.binding(window, foreign)) == RegionFault::wrong_domain);
  ProtectionContext other(f.table, kDomain + 1);
  CHECK(other.may_write({&sge, 1}));
}

TEST_CASE("protection: memory allowed once is checked as closely as before it was") {
  Fixture f;
  const STag first = f.add(10, 40);
  const STag second = f.add(60, 10, Access::none);
  const auto same_as_anew = [&](const Sge& sge) {
    const ProtectionContext anew(f.table, kDomain);
    const bool reads = f.context.may_read({&sge, 1}), writes = f.context.may_write({&sge, 1});
    CHECK(reads == anew.may_read({&sge, 1}));
    CHECK(writes == anew.may_write({&sge, 1}));
    // What was refused in between is not remembered, nor what a longer list named.
    const Sge right = f.sge(first, 10, 40);
    CHECK(f.context.may_read({&right, 1}));
    CHECK(f.context.may_write({&right, 1}));
  };
  for (const STag lkey : {first, second, first + 1, first ^ 0x100, STag{0}})
    for (size_t begin = 0; begin <= 70; ++begin)
      for (const uint32_t length : {0U, 1U, 10U, 39U, 40U, 41U, 4096U, UINT32_MAX})
        same_as_anew(f.sge(lkey, begin, length));
  const std::array<Sge, 2> list{f.sge(second, 60, 5), f.sge(first, 10, 5)};
  CHECK(f.context.may_read(list));
  CHECK_FALSE(f.context.may_write(list));
}

TEST_CASE("protection: memory allowed once is not after it was invalidated or revoked") {
  Fixture f;
  const STag revoked = f.add(0, 10);
  const STag invalidated = f.add(0, 10, kWritable);
  for (const STag stag : {revoked, invalidated}) {
    const Sge sge = f.sge(stag, 0, 10);
    REQUIRE(f.context.may_read({&sge, 1}));
    REQUIRE(f.context.may_write({&sge, 1}));
    if (stag == revoked)
      f.table.revoke(stag);
    else
      REQUIRE(f.context.invalidate(stag) == RegionFault::none);
    CHECK_FALSE(f.context.may_read({&sge, 1}));
    CHECK_FALSE(f.context.may_write({&sge, 1}));
  }
}

TEST_CASE("protection: memory that may be read anew after a change may not be written for that") {
  Fixture f;
  const STag gone = f.add(0, 10);
  const Sge sge = f.sge(gone, 0, 10), other = f.sge(f.add(20, 10), 20, 10);
  REQUIRE(f.context.may_write({&sge, 1}));
  REQUIRE(f.context.may_read({&other, 1}));
  REQUIRE(f.context.invalidate(gone) == RegionFault::none);
  CHECK(f.context.may_read({&other, 1}));  // remembered as of now
  CHECK_FALSE(f.context.may_write({&sge, 1}));
}

TEST_CASE("protection: a fast registration that names other memory allows no more than that") {
  Fixture f;
  const STag stag = f.add_entry(EntryKind::fast_registration);
  const auto name = [&](size_t begin, uint64_t length, Access access) {
    MemoryBinding binding = f.binding(stag, 0, length, access);
    binding.address = f.memory.data() + begin;
    return f.context.register_memory(binding);
  };
  REQUIRE(name(0, 40, Access::local_write) == RegionFault::none);
  const Sge old = f.sge(stag, 0, 40), now = f.sge(stag, 50, 10);
  REQUIRE(f.context.may_read({&old, 1}));
  REQUIRE(f.context.may_write({&old, 1}));
  REQUIRE(f.context.invalidate(stag) == RegionFault::none);
  REQUIRE(name(50, 10, Access::none) == RegionFault::none);  // under the same key
  CHECK_FALSE(f.context.may_read({&old, 1}));
  CHECK_FALSE(f.context.may_write({&old, 1}));
  CHECK(f.context.may_read({&now, 1}));
  CHECK_FALSE(f.context.may_write({&now, 1}));
}

TEST_CASE("protection: memory allowed once is not after it was deregistered") {
  Fixture f;
  const STag stag = f.add(0, 10);
  const Sge sge = f.sge(stag, 0, 10);
  REQUIRE(f.context.may_write({&sge, 1}));
  REQUIRE(f.tagged(stag, 0, 10) == RegionFault::none);
  REQUIRE(f.table.erase(stag));
  CHECK_FALSE(f.context.may_read({&sge, 1}));
  CHECK_FALSE(f.context.may_write({&sge, 1}));
  CHECK(f.tagged(stag, 0, 10) == RegionFault::unknown_stag);
  CHECK(f.context.find(stag) == nullptr);
  CHECK(f.context.invalidate(stag) == RegionFault::unknown_stag);
}

TEST_CASE("protection: a check without a fault tells the region, in which tagged offsets count") {
  Fixture f;
  const STag stag = f.add(20, 30, kWritable, 7000);
  const auto checked = f.context.check_tagged(stag, Access::remote_write, 7010, 20);
  CHECK(checked.fault == RegionFault::none);
  REQUIRE(checked.region != nullptr);
  CHECK(checked.region == f.context.find(stag));
  CHECK(checked.region->at(7010) == f.memory.data() + 30);
}

TEST_CASE("protection: the faults of a window are found in the order of RFC 5042 section 8.1.1") {
  Fixture f;
  const STag region = f.add(0, 100);
  const STag window = f.add_entry(EntryKind::window);
  ProtectionContext other_domain(f.table, kDomain + 1);
  ProtectionContext other_queue_pair(f.table, kDomain);
  other_queue_pair.set_queue_pair(kQueuePair + 1);
  // Each of these accesses has every fault that can still come.
  const auto fault = [&](const ProtectionContext& context, STag stag) {
    return context.check_tagged(stag, Access::remote_read, kTop, 2).fault;
  };
  CHECK(fault(other_domain, window ^ 1) == RegionFault::unknown_stag);
  CHECK(fault(other_domain, window) == RegionFault::invalid);
  REQUIRE(f.context.bind(f.binding(window, region)) == RegionFault::none);
  CHECK(fault(other_domain, window) == RegionFault::wrong_domain);
  CHECK(fault(other_queue_pair, window) == RegionFault::wrong_queue_pair);
  CHECK(fault(f.context, window) == RegionFault::access);
  CHECK(f.tagged(window, kTop, 2) == RegionFault::wrap);
  CHECK(f.tagged(window, kTop, 1) == RegionFault::bounds);
  CHECK(f.tagged(window, 500, 10) == RegionFault::none);
}

TEST_CASE("protection: a window is the queue pair's that bound it, to the end") {
  Fixture f;
  const STag region = f.add(0, 100);
  const STag window = f.add_entry(EntryKind::window);
  ProtectionContext other(f.table, kDomain);
  other.set_queue_pair(kQueuePair + 1);
  REQUIRE(f.context.bind(f.binding(window, region)) == RegionFault::none);
  CHECK(other.bind(f.binding(window, region, 0)) == RegionFault::wrong_queue_pair);
  CHECK(other.invalidate(window) == RegionFault::wrong_queue_pair);
  CHECK(other.invalidate_for_peer(window) == RegionFault::wrong_queue_pair);
  CHECK(f.tagged(window, 500, 1) == RegionFault::none);
  CHECK(f.context.invalidate_for_peer(window) == RegionFault::none);
  CHECK(f.tagged(window, 500, 1) == RegionFault::invalid);
  CHECK(other.bind(f.binding(window, region)) == RegionFault::none);
  CHECK(f.tagged(window, 500, 1) == RegionFault::wrong_queue_pair);
}

TEST_CASE("protection: a window is no memory of requests") {
  Fixture f;
  const STag window = f.add_entry(EntryKind::window);
  REQUIRE(f.context.bind(f.binding(window, f.add(0, 100))) == RegionFault::none);
  const Sge sge = f.sge(window, 0, 1);
  CHECK_FALSE(f.context.may_read({&sge, 1}));
  CHECK_FALSE(f.context.may_write({&sge, 1}));
}

TEST_CASE("protection: the key that an entry had before names nothing, locally and to peers") {
  Fixture f;
  const STag old_stag = f.add_entry(EntryKind::fast_registration);
  const STag stag = old_stag ^ 0xFF;
  MemoryBinding memory = f.binding(stag, 0, 10, Access::local_write | Access::remote_write);
  REQUIRE(f.context.register_memory(memory) == RegionFault::none);
  const Sge with_old = f.sge(old_stag, 0, 10);
  const Sge with_new = f.sge(stag, 0, 10);
  CHECK_FALSE(f.context.may_read({&with_old, 1}));
  CHECK(f.context.may_write({&with_new, 1}));
  CHECK(f.tagged(old_stag, 500, 1) == RegionFault::unknown_stag);
  CHECK(f.tagged(stag, 500, 1) == RegionFault::none);
  CHECK(f.context.invalidate_for_peer(old_stag) == RegionFault::unknown_stag);
  CHECK(f.context.invalidate_for_peer(stag) == RegionFault::none);
  CHECK_FALSE(f.context.may_read({&with_new, 1}));
}

TEST_CASE("protection: a fast registration belongs to its domain, and not to a queue pair") {
  Fixture f;
  const STag stag = f.add_entry(EntryKind::fast_registration);
  ProtectionContext other_domain(f.table, kDomain + 1);
  ProtectionContext other(f.table, kDomain);
  other.set_queue_pair(kQueuePair + 1);
  const MemoryBinding memory = f.binding(stag, 0, 10, Access::remote_read);
  CHECK(other_domain.register_memory(memory) == RegionFault::wrong_domain);
  CHECK(f.context.register_memory(memory) == RegionFault::none);
  CHECK(other.check_tagged(stag, Access::remote_read, 500, 10).fault == RegionFault::none);
  CHECK(other.invalidate(stag) == RegionFault::none);
  CHECK(f.tagged(stag, 500, 10, Access::remote_read) == RegionFault::invalid);
}

TEST_CASE("protection: a peer invalidates a region with the right for it, its owner any") {
  Fixture f;
  const STag closed = f.add(0, 10);
  const STag open = f.add(0, 10, kWritable | Access::remote_invalidate);
  CHECK(f.context.invalidate_for_peer(closed) == RegionFault::access);
  CHECK(f.tagged(closed, 0, 10) == RegionFault::none);
  CHECK(f.context.invalidate_for_peer(open) == RegionFault::none);
  CHECK(f.tagged(open, 0, 10) == RegionFault::invalid);
  CHECK(f.context.invalidate(closed) == RegionFault::none);
  CHECK(f.tagged(closed, 0, 10) == RegionFault::invalid);
  const Sge sge = f.sge(closed, 0, 1);
  CHECK_FALSE(f.context.may_read({&sge, 1}));
}

TEST_CASE("protection: a region is not invalidated while a window is bound to it") {
  Fixture f;
  const STag region = f.add(0, 100);
  const STag window = f.add_entry(EntryKind::window);
  REQUIRE(f.context.bind(f.binding(window, region)) == RegionFault::none);
  CHECK(f.context.invalidate(region) == RegionFault::in_use);
  CHECK(f.tagged(region, 0, 1) == RegionFault::none);
  REQUIRE(f.context.bind(f.binding(window, region, 0)) == RegionFault::none);
  CHECK(f.context.invalidate(region) == RegionFault::none);
}

TEST_CASE("protection: a window is closed as soon as the region that it is bound to has gone") {
  Fixture f;
  const STag region = f.add(0, 100);
  const STag window = f.add_entry(EntryKind::window);
  REQUIRE(f.context.bind(f.binding(window, region)) == RegionFault::none);
  REQUIRE(f.table.erase(region));
  CHECK(f.tagged(window, 500, 1) == RegionFault::invalid);
  REQUIRE(f.context.find(window) != nullptr);
  CHECK_FALSE(f.context.find(window)->valid);
}

TEST_CASE("protection: no bytes may stand at a region's end and not beyond it") {
  Fixture f;
  const STag low = f.add(0, 100, kWritable, 1000);
  CHECK(f.tagged(low, 1100, 0) == RegionFault::none);
  CHECK(f.tagged(low, 1101, 0) == RegionFault::bounds);
  CHECK(f.tagged(low, 999, 0) == RegionFault::bounds);
  CHECK(f.tagged(low ^ 1, 1000, 0) == RegionFault::unknown_stag);
  const STag high = f.add(0, 100, kWritable, kTop - 99);
  CHECK(f.tagged(high, kTop, 1) == RegionFault::none);
  CHECK(f.tagged(high, kTop, 2) == RegionFault::wrap);
  CHECK(f.tagged(high, kTop - 100, 1) == RegionFault::bounds);
}
