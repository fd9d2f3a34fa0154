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
      {.sges = {sge}, .destination = a.address(), .remote = {0xC0FFEE42, (1 << 20) + 100}}));
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

TEST_CASE("STags that a device draws one after the other are far apart, and another's differ") {
  constexpr size_t kRegions = 200;
  World world;
  std::vector<STag> stags;
  for (int device = 0; device < 2; ++device) {
    Party party(world.add_device());
    std::deque<MemoryRegion> regions;
    for (size_t i = 0; i < kRegions; ++i) {
      regions.emplace_back(party.pd, std::span(party.memory), kWritable);
      stags.push_back(regions.back().rkey());
    }
  }
  // Of 24 random bits, two are within 4,096 of each other once in 2,048 times.
  size_t near = 0;
  size_t upper_half = 0;
  for (size_t i = 1; i < stags.size(); ++i) {
    const auto distance = static_cast<int32_t>(stags[i] - stags[i - 1]) >> 8;
    near += distance > -4096 && distance < 4096 ? 1 : 0;
    upper_half += stags[i] >> 31;
  }
  CHECK(near < 10);
  CHECK(upper_half > 100);
  CHECK(upper_half < 300);
  size_t common = 0;
  for (size_t i = 0; i < kRegions; ++i) common += stags[i] >> 8 == stags[kRegions + i] >> 8 ? 1 : 0;
  CHECK(common < 10);
}

TEST_CASE("a region may end at the last offset of 64 bits, and not beyond") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  const uint64_t last = UINT64_MAX - (a.memory.size() - 1);
  CHECK(refusal([&] {
          MemoryRegion::with_stag(a.pd, std::span(a.memory), 0x12345600, last + 1, kWritable);
        }) == Errc::invalid_argument);
  const MemoryRegion region =
      MemoryRegion::with_stag(a.pd, std::span(a.memory), 0x12345600, last, kWritable);
  b.fill(pattern(10, 1));
  const Sge sge = b.mr.sge(0, 10);
  REQUIRE_FALSE(b.qp.post_write_record(
      {.sges = {sge}, .destination = a.address(), .remote = {0x12345600, UINT64_MAX - 9}}));
  world.settle();
  REQUIRE(drain(a.recv_cq).size() == 1);
  CHECK(same(a.bytes(a.memory.size() - 10, 10), b.bytes(0, 10)));
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
