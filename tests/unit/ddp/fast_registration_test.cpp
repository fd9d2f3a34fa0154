// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "base/random.h"
#include "ddp/stag_table.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

constexpr uint32_t kDomain = 5;
constexpr uint32_t kQueuePair = 77;
constexpr Access kWrite = Access::local_write | Access::remote_write;

struct Fixture {
  std::array<std::byte, 100> memory{};
  Random random{7};
  STagTable table{[] {}, [this] { return static_cast<uint32_t>(random.next()); }};
  STag stag = table.insert(
      {.protection_domain = kDomain, .kind = EntryKind::fast_registration, .max_length = 64});

  MemoryBinding binding(uint64_t length = 64, Access access = kWrite) {
    return {
        .stag = stag, .address = memory.data(), .length = length, .access = access, .base = 5000};
  }
  RegionFault fast_register(const MemoryBinding& wanted) {
    return table.register_memory(wanted, kDomain);
  }
  RegionFault use(STag named, uint64_t offset, uint64_t length) {
    return check_tagged(table.find(named), kDomain, kQueuePair, Access::remote_write, offset,
                        length);
  }
};

}  // namespace

TEST_CASE("a fast registration names memory from its work request to its invalidation") {
  Fixture f;
  const Sge sge{f.memory.data(), 64, f.stag};
  CHECK(f.use(f.stag, 5000, 1) == RegionFault::invalid);
  CHECK(f.fast_register(f.binding()) == RegionFault::none);
  CHECK(f.use(f.stag, 5000, 64) == RegionFault::none);
  CHECK(f.use(f.stag, 5000, 65) == RegionFault::bounds);
  CHECK(check_tagged(f.table.find(f.stag), kDomain, kQueuePair + 1, Access::remote_write, 5000,
                     1) == RegionFault::none);  // any queue pair of the domain
  CHECK(check_local(f.table.find(f.stag), kDomain, Access::local_write, sge) == RegionFault::none);
  CHECK(f.table.invalidate(f.stag, kDomain, kQueuePair, false) == RegionFault::none);
  CHECK(f.use(f.stag, 5000, 1) == RegionFault::invalid);
  CHECK(check_local(f.table.find(f.stag), kDomain, Access::none, sge) == RegionFault::invalid);
}

TEST_CASE("a fast registration gets a new key each time") {
  Fixture f;
  MemoryBinding binding = f.binding();
  binding.stag = f.stag ^ 3;
  CHECK(f.fast_register(binding) == RegionFault::none);
  CHECK(f.use(f.stag, 5000, 1) == RegionFault::unknown_stag);
  CHECK(f.use(binding.stag, 5000, 1) == RegionFault::none);
}

TEST_CASE("a fast registration is refused while valid or beyond its limits") {
  Fixture f;
  CHECK(f.fast_register(f.binding(65)) == RegionFault::bounds);
  CHECK(f.table.register_memory(f.binding(), kDomain + 1) == RegionFault::wrong_domain);
  CHECK(f.fast_register(f.binding(64, Access::remote_write)) == RegionFault::access);
  CHECK(f.fast_register(f.binding(64, Access::remote_atomic)) == RegionFault::access);
  MemoryBinding wraps = f.binding();
  wraps.base = UINT64_MAX - 62;
  CHECK(f.fast_register(wraps) == RegionFault::wrap);
  MemoryBinding beyond = f.binding();
  beyond.address = reinterpret_cast<void*>(UINTPTR_MAX - 62);
  CHECK(f.fast_register(beyond) == RegionFault::wrap);
  CHECK_FALSE(f.table.find(f.stag)->valid);
  CHECK(f.fast_register(f.binding()) == RegionFault::none);
  CHECK(f.fast_register(f.binding(1)) == RegionFault::in_use);
  CHECK(f.use(f.stag, 5000, 64) == RegionFault::none);
}

TEST_CASE("an STag that is no fast registration cannot be registered by a work request") {
  Fixture f;
  MemoryBinding binding = f.binding(1);
  binding.stag = f.table.insert({.protection_domain = kDomain});
  CHECK(f.fast_register(binding) == RegionFault::unknown_stag);
  binding.stag = f.table.insert({.protection_domain = kDomain, .kind = EntryKind::window});
  CHECK(f.fast_register(binding) == RegionFault::unknown_stag);
  binding.stag = f.stag ^ 0x100;
  CHECK(f.fast_register(binding) == RegionFault::unknown_stag);
}

TEST_CASE("a peer may invalidate a fast registration of its protection domain") {
  Fixture f;
  CHECK(f.fast_register(f.binding()) == RegionFault::none);
  CHECK(f.table.invalidate(f.stag, kDomain + 1, kQueuePair, true) == RegionFault::wrong_domain);
  CHECK(f.use(f.stag, 5000, 1) == RegionFault::none);
  CHECK(f.table.invalidate(f.stag, kDomain, kQueuePair, true) == RegionFault::none);
  CHECK(f.use(f.stag, 5000, 1) == RegionFault::invalid);
}
