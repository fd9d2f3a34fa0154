// SPDX-License-Identifier: Apache-2.0
#include "contract/pair.h"

/// Memory regions.
namespace diwarp::contract {

namespace {

struct Domain {
  Device device = open_device();
  ProtectionDomain pd{device};
  Pages pages{8192};
};

}  // namespace

TEST_CASE("A region tells the memory that it was registered with") {
  Domain domain;
  const MemoryRegion region(domain.pd, domain.pages.bytes());
  CHECK(region.address() == domain.pages.bytes().data());
  CHECK(region.length() == 8192);
  CHECK(region.valid());
}

TEST_CASE("A region's lkey and rkey are one STag, and each region has its own") {
  Domain domain;
  const MemoryRegion one(domain.pd, domain.pages.bytes());
  const MemoryRegion other(domain.pd, domain.pages.bytes());
  CHECK(one.lkey() == one.rkey());
  CHECK(other.lkey() == other.rkey());
  CHECK(one.lkey() != other.lkey());
}

TEST_CASE("A region's tagged offsets begin at its address, or where the application says") {
  if (!needs(Capability::chosen_bases)) return;
  Domain domain;
  const MemoryRegion plain(domain.pd, domain.pages.bytes());
  CHECK(plain.base() == reinterpret_cast<uintptr_t>(domain.pages.bytes().data()));
  const MemoryRegion based(domain.pd, domain.pages.bytes(), Access::local_write, 0x5000);
  CHECK(based.base() == 0x5000);
}

TEST_CASE("A region's SGEs name its memory") {
  Domain domain;
  std::byte* const memory = domain.pages.bytes().data();
  const MemoryRegion region(domain.pd, memory, 4096, Access::local_write);
  const Sge part = region.sge(100, 50);
  CHECK(part.address == memory + 100);
  CHECK(part.length == 50);
  CHECK(part.lkey == region.lkey());
  const Sge whole = region.sge();
  CHECK(whole.address == memory);
  CHECK(whole.length == 4096);
  CHECK(whole.lkey == region.lkey());
}

TEST_CASE("A region may be empty") {
  if (!needs(Capability::empty_regions)) return;
  Domain domain;
  const MemoryRegion region(domain.pd, nullptr, 0);
  CHECK(region.length() == 0);
  CHECK(region.valid());
}

TEST_CASE("A region of null memory with a length is refused with invalid_argument") {
  Domain domain;
  CHECK(refusal([&] { MemoryRegion(domain.pd, nullptr, 10); }) == Errc::invalid_argument);
}

TEST_CASE("A region that peers may write must be writable locally, too") {
  Domain domain;
  CHECK(refusal([&] { MemoryRegion(domain.pd, domain.pages.bytes(), Access::remote_write); }) ==
        Errc::invalid_argument);
}

TEST_CASE("A region for atomics of peers must be writable locally, too") {
  Domain domain;
  if (!needs(domain.device, Capability::atomics)) return;
  CHECK(refusal([&] { MemoryRegion(domain.pd, domain.pages.bytes(), Access::remote_atomic); }) ==
        Errc::invalid_argument);
}

TEST_CASE("A region whose tagged offsets would pass 2^64 is refused") {
  Domain domain;
  CHECK(refusal([&] {
          MemoryRegion(domain.pd, domain.pages.bytes(), Access::local_write, ~uint64_t{0} - 100);
        }) == Errc::invalid_argument);
}

TEST_CASE("The same memory may be registered with different rights") {
  Domain domain;
  const MemoryRegion closed(domain.pd, domain.pages.bytes(), Access::none);
  const MemoryRegion open(domain.pd, domain.pages.bytes(), kOpen);
  CHECK(domain.device.query().memory_regions == 2);
  CHECK(closed.lkey() != open.lkey());
}

TEST_CASE("A Write finds its place by the base of the region") {
  if (!needs(Capability::chosen_bases)) return;
  Pair pair;
  const Pages pages(4096);
  const MemoryRegion region(pair.b.pd, pages.bytes(), kOpen, 0x1000);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 0));
  pair.a.fill(0, 100, 3);
  REQUIRE_FALSE(pair.a.write(0, 100, {region.rkey(), 0x1003}));
  REQUIRE_FALSE(pair.a.send(0, 0));
  next_good(pair.b.recv_cq);
  CHECK_FALSE(test::first_wrong(pages.bytes().subspan(3, 100), 3));
  CHECK(pages.bytes()[2] == std::byte{0});
  CHECK(pages.bytes()[103] == std::byte{0});
}

TEST_CASE("The owner of a region names its memory by addresses, whatever the base") {
  if (!needs(Capability::chosen_bases)) return;
  Pair pair;
  const Pages pages(4096);
  const MemoryRegion region(pair.a.pd, pages.bytes(), kSink, 0x1000);
  test::fill(pages.bytes().first(100), 3);
  for (const SendFlags flags : {SendFlags::none, SendFlags::inline_data}) {
    pair.b.clear();
    REQUIRE_FALSE(pair.b.post_recv(1, 0, 100));
    REQUIRE_FALSE(
        pair.a.qp.post_send({.sges = region.sge(10, 50), .flags = SendFlags::signaled | flags}));
    next_good(pair.a.send_cq);
    CHECK(next_good(pair.b.recv_cq).byte_count == 50);
    CHECK_FALSE(test::first_wrong(pair.b.bytes(0, 50), 3, 10));
  }
  REQUIRE_FALSE(pair.a.qp.post_recv({.sges = region.sge(200, 50)}));
  pair.b.fill(0, 50, 4);
  REQUIRE_FALSE(pair.b.send(0, 50));
  next_good(pair.a.recv_cq);
  CHECK_FALSE(test::first_wrong(pages.bytes().subspan(200, 50), 4));
}

TEST_CASE("A Send needs no right to its memory but that it is registered") {
  Pair pair({.access = Access::none});
  check_message(pair.a, pair.b);
}

TEST_CASE("A region may be destroyed while its queue pair goes on with another") {
  Pair pair;
  {
    const Pages pages(4096);
    const MemoryRegion region(pair.a.pd, pages.bytes());
    test::fill(pages.bytes().first(10), 5);
    REQUIRE_FALSE(pair.b.post_recv(1, 0, 10));
    REQUIRE_FALSE(pair.a.qp.post_send({.sges = region.sge(0, 10)}));
    next_good(pair.b.recv_cq);
    next_good(pair.a.send_cq);
    CHECK(pair.b.holds(0, 10, 5));
  }
  check_message(pair.a, pair.b);
}

TEST_CASE("A region has the STag and the base that the application chose") {
  if (!needs(Capability::chosen_stags)) return;
  Pair pair;
  const Pages pages(4096);
  const MemoryRegion region =
      MemoryRegion::with_stag(pair.b.pd, pages.bytes(), 0xC0FFEE42, 1 << 20, kOpen);
  CHECK(region.rkey() == 0xC0FFEE42);
  CHECK(region.lkey() == 0xC0FFEE42);
  CHECK(region.base() == 1 << 20);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 0));
  pair.a.fill(0, 100, 3);
  REQUIRE_FALSE(pair.a.write(0, 100, {0xC0FFEE42, (1 << 20) + 8}));
  REQUIRE_FALSE(pair.a.send(0, 0));
  next_good(pair.b.recv_cq);
  CHECK_FALSE(test::first_wrong(pages.bytes().subspan(8, 100), 3));
}

TEST_CASE("A chosen STag that is in use, or that has no index, is refused") {
  Domain domain;
  if (!needs(domain.device, Capability::chosen_stags)) return;
  const auto choose = [&](STag stag) {
    return refusal(
        [&] { MemoryRegion::with_stag(domain.pd, domain.pages.bytes(), stag, 0, kOpen); });
  };
  const MemoryRegion region(domain.pd, domain.pages.bytes());
  CHECK(choose(region.rkey()) == Errc::invalid_argument);
  CHECK(choose(region.rkey() ^ 0xFF) == Errc::invalid_argument);
  CHECK(choose(0xFF) == Errc::invalid_argument);
  CHECK_FALSE(choose(0xC0FFEE00));
}

}  // namespace diwarp::contract
