// SPDX-License-Identifier: Apache-2.0
#include "stack/record_scene.h"

/// Regions under an STag that the application chose.
namespace diwarp::test {

TEST_CASE("a region has the STag and the base that were chosen for it") {
  World world;
  Device& device = world.add_device();
  Party a(device);
  Party b(world.add_device());
  b.fill(pattern(5000, 1));
  const MemoryRegion region =
      MemoryRegion::with_stag(a.pd, std::span(a.memory), 0xC0FFEE42, 1 << 20, kWritable);
  CHECK(region.rkey() == 0xC0FFEE42);
  CHECK(region.lkey() == 0xC0FFEE42);
  CHECK(region.base() == 1 << 20);
  CHECK(region.address() == a.memory.data());
  CHECK(region.length() == a.memory.size());
  CHECK(region.valid());
  const Sge sge = b.mr.sge(0, 5000);
  REQUIRE_FALSE(b.qp.post_write_record(
      {.local = {sge}, .destination = a.address(), .remote = {0xC0FFEE42, (1 << 20) + 100}}));
  world.settle();
  REQUIRE(drain(a.recv_cq).size() == 1);
  CHECK(same(a.bytes(100, 5000), b.bytes(0, 5000)));
}

TEST_CASE("an STag that is none, or in use, cannot be chosen") {
  World world;
  Party party(world.add_device());
  const auto choose = [&](STag stag, uint64_t base = 0) {
    return refusal(
        [&] { MemoryRegion::with_stag(party.pd, std::span(party.memory), stag, base, kWritable); });
  };
  CHECK(choose(0) == Errc::invalid_argument);
  CHECK(choose(0xFF) == Errc::invalid_argument);
  CHECK(choose(party.mr.rkey()) == Errc::invalid_argument);
  CHECK(choose(party.mr.rkey() ^ 0xFF) == Errc::invalid_argument);
  const MemoryWindow window(party.pd);
  CHECK(choose(window.stag()) == Errc::invalid_argument);
  CHECK(choose(0x12345600, ~uint64_t{0} - 100) == Errc::invalid_argument);
  CHECK_FALSE(choose(0x12345600));
  CHECK_FALSE(choose(0x12345600));  // the one before is gone
  const MemoryRegion taken =
      MemoryRegion::with_stag(party.pd, std::span(party.memory), 0x12345600, 0, kWritable);
  CHECK(choose(0x12345601) == Errc::invalid_argument);
  CHECK_FALSE(choose(0x12345700));
}

TEST_CASE("devices choose STags each for itself") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  const auto choose = [](Party& party) {
    return MemoryRegion::with_stag(party.pd, std::span(party.memory), 0x12345600, 0, kWritable);
  };
  const MemoryRegion at_a = choose(a);
  const MemoryRegion at_b = choose(b);
  CHECK(at_a.rkey() == at_b.rkey());
}

}  // namespace diwarp::test
