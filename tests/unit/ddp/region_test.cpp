// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "ddp/stag_table.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::ddp;

namespace {

constexpr uint64_t kTop = UINT64_MAX;
constexpr uint32_t kDomain = 5;
constexpr uint32_t kQueuePair = 77;
constexpr Access kWrite = Access::local_write | Access::remote_write;

Region region_at(uint64_t base, uint64_t length, Access access = kWrite) {
  return {.protection_domain = kDomain, .access = access, .base = base, .length = length};
}

RegionFault tagged(const Region& region, uint64_t offset, uint64_t length) {
  return check_tagged(&region, kDomain, kQueuePair, Access::remote_write, offset, length);
}

}  // namespace

TEST_CASE("tagged bytes must lie inside the region") {
  const Region region = region_at(1000, 100);
  CHECK(tagged(region, 1000, 100) == RegionFault::none);
  CHECK(tagged(region, 1000, 1) == RegionFault::none);
  CHECK(tagged(region, 1099, 1) == RegionFault::none);
  CHECK(tagged(region, 999, 1) == RegionFault::bounds);
  CHECK(tagged(region, 999, 101) == RegionFault::bounds);
  CHECK(tagged(region, 1000, 101) == RegionFault::bounds);
  CHECK(tagged(region, 1099, 2) == RegionFault::bounds);
  CHECK(tagged(region, 1100, 1) == RegionFault::bounds);
  CHECK(tagged(region, 0, 1) == RegionFault::bounds);
}

TEST_CASE("a tagged length of zero is checked like any other") {
  const Region region = region_at(1000, 100);
  CHECK(tagged(region, 1000, 0) == RegionFault::none);
  CHECK(tagged(region, 1100, 0) == RegionFault::none);
  CHECK(tagged(region, 999, 0) == RegionFault::bounds);
  CHECK(tagged(region, 1101, 0) == RegionFault::bounds);
  CHECK(tagged(region, kTop, 0) == RegionFault::bounds);
  CHECK(tagged(region_at(0, 0), 0, 0) == RegionFault::none);
  CHECK(tagged(region_at(0, 0), 0, 1) == RegionFault::bounds);
}

TEST_CASE("tagged offsets and lengths at the end of 64 bits do not slip through") {
  const Region low = region_at(0, 100);
  CHECK(tagged(low, kTop, 1) == RegionFault::bounds);
  CHECK(tagged(low, kTop, 2) == RegionFault::wrap);
  CHECK(tagged(low, 1, kTop) == RegionFault::bounds);
  CHECK(tagged(low, 50, kTop - 49) == RegionFault::bounds);
  CHECK(tagged(low, kTop, kTop) == RegionFault::wrap);

  const Region high = region_at(kTop - 99, 100);  // its last byte has the highest offset there is
  CHECK(tagged(high, kTop - 99, 100) == RegionFault::none);
  CHECK(tagged(high, kTop, 1) == RegionFault::none);
  CHECK(tagged(high, kTop, 0) == RegionFault::none);
  CHECK(tagged(high, kTop, 2) == RegionFault::wrap);
  CHECK(tagged(high, kTop - 99, 101) == RegionFault::wrap);
  CHECK(tagged(high, 0, 1) == RegionFault::bounds);

  const Region all = region_at(0, kTop);
  CHECK(tagged(all, 0, kTop) == RegionFault::none);
  CHECK(tagged(all, kTop - 1, 1) == RegionFault::none);
  CHECK(tagged(all, kTop, 1) == RegionFault::bounds);
}

TEST_CASE("bytes that run over the end of 64 bits wrap") {
  const Region wrapping = region_at(kTop - 9, 100);
  CHECK(tagged(wrapping, kTop - 9, 10) == RegionFault::none);
  CHECK(tagged(wrapping, kTop - 9, 11) == RegionFault::wrap);
  CHECK(tagged(wrapping, kTop, 2) == RegionFault::wrap);
  CHECK(tagged(wrapping, 5, 1) == RegionFault::bounds);
}

TEST_CASE("the first fault of a tagged access is told") {
  const Region region = region_at(1000, 100, Access::local_write);
  const Access want = Access::remote_write;
  CHECK(check_tagged(nullptr, kDomain, kQueuePair, want, 0, 1) == RegionFault::unknown_stag);
  CHECK(check_tagged(&region, kDomain + 1, kQueuePair, want, 0, 1) == RegionFault::wrong_domain);
  CHECK(check_tagged(&region, kDomain, kQueuePair, want, 0, 1) == RegionFault::access);
  CHECK(check_tagged(&region, kDomain, kQueuePair, Access::local_write, 0, 1) ==
        RegionFault::bounds);
  CHECK(check_tagged(&region, kDomain, kQueuePair, Access::local_write, 1000, 1) ==
        RegionFault::none);
}

TEST_CASE("every right that is wanted must be there") {
  const Region both = region_at(0, 10, kWrite);
  CHECK(check_tagged(&both, kDomain, kQueuePair, kWrite, 0, 1) == RegionFault::none);
  CHECK(check_tagged(&both, kDomain, kQueuePair, Access::remote_read, 0, 1) == RegionFault::access);
  CHECK(check_tagged(&both, kDomain, kQueuePair, kWrite | Access::remote_read, 0, 1) ==
        RegionFault::access);
  const Region none = region_at(0, 10, Access::none);
  CHECK(check_tagged(&none, kDomain, kQueuePair, Access::none, 0, 1) == RegionFault::none);
}

TEST_CASE("an SGE must lie inside the memory of its region") {
  std::array<std::byte, 100> memory{};
  Region region = region_at(7777, 50);
  region.memory = memory.data() + 20;
  const auto fault = [&](size_t begin, uint32_t length) {
    return check_local(&region, kDomain, Access::local_write, {memory.data() + begin, length, 0});
  };
  CHECK(fault(20, 50) == RegionFault::none);
  CHECK(fault(69, 1) == RegionFault::none);
  CHECK(fault(19, 1) == RegionFault::bounds);
  CHECK(fault(19, 52) == RegionFault::bounds);
  CHECK(fault(20, 51) == RegionFault::bounds);
  CHECK(fault(70, 1) == RegionFault::bounds);
  CHECK(fault(20, 0xFFFFFFFF) == RegionFault::bounds);
  const Sge far{reinterpret_cast<void*>(UINTPTR_MAX), 2, 0};
  CHECK(check_local(&region, kDomain, Access::none, far) == RegionFault::bounds);
  const Sge null{nullptr, 1, 0};
  CHECK(check_local(&region, kDomain, Access::none, null) == RegionFault::bounds);
}

TEST_CASE("an SGE in front of its region is outside, even where the region runs over 64 bits") {
  Region region = region_at(0, 100);
  region.memory = reinterpret_cast<std::byte*>(UINTPTR_MAX - 9);
  const auto fault = [&](uintptr_t address) {
    const Sge sge{reinterpret_cast<void*>(address), 1, 0};
    return check_local(&region, kDomain, Access::local_write, sge);
  };
  CHECK(fault(UINTPTR_MAX - 9) == RegionFault::none);
  CHECK(fault(UINTPTR_MAX - 10) == RegionFault::bounds);
  CHECK(fault(5) == RegionFault::bounds);
}

TEST_CASE("the first fault of an SGE is told") {
  std::array<std::byte, 10> memory{};
  Region region = region_at(0, 10, Access::none);
  region.memory = memory.data();
  const Sge sge{memory.data(), 11, 0};
  CHECK(check_local(nullptr, kDomain, Access::local_write, sge) == RegionFault::unknown_stag);
  CHECK(check_local(&region, kDomain + 1, Access::local_write, sge) == RegionFault::wrong_domain);
  CHECK(check_local(&region, kDomain, Access::local_write, sge) == RegionFault::access);
  CHECK(check_local(&region, kDomain, Access::none, sge) == RegionFault::bounds);
}

TEST_CASE("an SGE of no bytes needs no region") {
  CHECK(check_local(nullptr, kDomain, Access::local_write, {}) == RegionFault::none);
}

TEST_CASE("an STag that is not valid may be used neither by a peer nor locally") {
  std::array<std::byte, 10> memory{};
  Region region = region_at(0, 10);
  region.memory = memory.data();
  region.valid = false;
  const Sge sge{memory.data(), 1, 0};
  CHECK(tagged(region, 0, 1) == RegionFault::invalid);
  CHECK(check_tagged(&region, kDomain + 1, kQueuePair, kWrite, 0, 1) == RegionFault::invalid);
  CHECK(check_local(&region, kDomain, Access::local_write, sge) == RegionFault::invalid);
  region.valid = true;
  CHECK(tagged(region, 0, 1) == RegionFault::none);
  CHECK(check_local(&region, kDomain, Access::local_write, sge) == RegionFault::none);
}

TEST_CASE("a window is for its queue pair and not for local use") {
  std::array<std::byte, 10> memory{};
  Region window = region_at(0, 10);
  window.memory = memory.data();
  window.kind = EntryKind::window;
  window.qp_number = kQueuePair;
  const auto fault = [&](uint32_t qp_number, Access want) {
    return check_tagged(&window, kDomain, qp_number, want, 0, 1);
  };
  CHECK(fault(kQueuePair, Access::remote_write) == RegionFault::none);
  CHECK(fault(kQueuePair + 1, Access::remote_write) == RegionFault::wrong_queue_pair);
  CHECK(fault(kQueuePair + 1, Access::remote_read) == RegionFault::wrong_queue_pair);
  CHECK(fault(kQueuePair, Access::remote_read) == RegionFault::access);
  CHECK(check_tagged(&window, kDomain + 1, kQueuePair + 1, Access::none, 0, 1) ==
        RegionFault::wrong_domain);
  const Sge sge{memory.data(), 1, 0};
  CHECK(check_local(&window, kDomain, Access::none, sge) == RegionFault::access);
  window.kind = EntryKind::fast_registration;
  CHECK(check_local(&window, kDomain, Access::none, sge) == RegionFault::none);
}
