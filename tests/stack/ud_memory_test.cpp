// SPDX-License-Identifier: Apache-2.0
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

enum class Fault { unknown_key, foreign_domain, beyond_end, before_begin, not_writable };

/// A receive of 100 bytes that the queue pair may not use.
struct BadReceive {
  BadReceive(Party& party, const Device& device, Fault fault)
      : domain(device),
        read_only(party.pd, std::span(party.memory), Access::none),
        foreign(domain, std::span(party.memory)),
        inner(party.pd, std::span(party.memory).subspan(1000, 200)) {
    switch (fault) {
      case Fault::unknown_key:
        sge = {party.memory.data(), 100, 0};
        break;
      case Fault::foreign_domain:
        sge = foreign.sge(0, 100);
        break;
      case Fault::beyond_end:
        sge = inner.sge(101, 100);
        break;
      case Fault::before_begin:
        sge = {inner.address() - 1, 100, inner.lkey()};
        break;
      case Fault::not_writable:
        sge = read_only.sge(0, 100);
        break;
    }
  }
  ProtectionDomain domain;
  MemoryRegion read_only;
  MemoryRegion foreign;
  MemoryRegion inner;
  Sge sge;
};

}  // namespace

TEST_CASE("a receive into memory that may not be written fails, and nothing is written") {
  const auto fault = GENERATE(Fault::unknown_key, Fault::foreign_domain, Fault::beyond_end,
                              Fault::before_begin, Fault::not_writable);
  const bool several_segments = GENERATE(false, true);
  CAPTURE(static_cast<int>(fault), several_segments);
  World world;
  Device& device = world.add_device();
  Party target(device);
  Stranger stranger(world);
  const BadReceive bad(target, device, fault);
  const std::array<Sge, 2> sges = {target.mr.sge(5000, 3), bad.sge};
  REQUIRE_FALSE(target.qp.post_recv({.wr_id = 7, .sges = sges}));
  REQUIRE_FALSE(target.post_recv(8, 0, 100));
  const std::vector<std::byte> before = target.memory;
  stranger.send(target.address(),
                {.msn = 1, .last = !several_segments, .payload = pattern(100, 1)});
  world.settle();
  const auto failed = drain(target.recv_cq);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].wr_id == 7);
  CHECK(failed[0].opcode == WcOpcode::recv);
  CHECK(failed[0].status == WcStatus::local_protection_error);
  CHECK(failed[0].qp_number == target.qp.number());
  CHECK(target.memory == before);
  stranger.send(target.address(), {.msn = 2, .payload = pattern(100, 2)});
  world.settle();
  const auto good = drain(target.recv_cq);
  REQUIRE(good.size() == 1);
  CHECK(good[0].status == WcStatus::success);
  CHECK(target.qp.state() == QpState::rts);
}

TEST_CASE("an empty SGE needs no region") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  const std::array<Sge, 2> target = {Sge{nullptr, 0, 12345}, b.mr.sge(0, 10)};
  const std::array<Sge, 2> source = {a.mr.sge(0, 10), Sge{nullptr, 0, 54321}};
  REQUIRE_FALSE(b.qp.post_recv({.sges = target}));
  REQUIRE_FALSE(a.qp.post_send({.sges = source, .destination = b.address()}));
  world.settle();
  CHECK(drain(a.send_cq).at(0).status == WcStatus::success);
  CHECK(drain(b.recv_cq).at(0).status == WcStatus::success);
}

TEST_CASE("memory is never written once its region is gone") {
  World world;
  Party target(world.add_device());
  Stranger stranger(world);
  auto memory = std::make_unique<std::vector<std::byte>>(100);
  auto region = std::make_unique<MemoryRegion>(target.pd, std::span(*memory));
  const Sge sge = region->sge();
  for (uint64_t id = 0; id < 2; ++id)
    REQUIRE_FALSE(target.qp.post_recv({.wr_id = id, .sges = {&sge, 1}}));
  SECTION("while a receive is posted") {
    region.reset();
    memory.reset();
    stranger.send(target.address(), {.msn = 1, .payload = pattern(100, 1)});
  }
  SECTION("while a message is open") {
    stranger.send(target.address(), {.msn = 1, .last = false, .payload = pattern(50, 1)});
    world.settle();
    CHECK(drain(target.recv_cq).empty());
    region.reset();
    memory.reset();
    stranger.send(target.address(), {.msn = 1, .offset = 50, .payload = pattern(50, 1)});
  }
  world.settle();
  const auto completions = drain(target.recv_cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].wr_id == 0);
  CHECK(completions[0].status == WcStatus::local_protection_error);
}

TEST_CASE("memory is never read once its region is gone") {
  World world;
  Party source(world.add_device(), {.datagram = {.max_rate = 1000000}});
  Party target(world.add_device());
  target.post_receives(4, 10000);
  auto memory = std::make_unique<std::vector<std::byte>>(10000);
  auto region = std::make_unique<MemoryRegion>(source.pd, std::span(*memory));
  const Sge sge = region->sge();
  // The first message is half sent when its region goes, the second not at all.
  for (uint64_t id = 0; id < 2; ++id)
    REQUIRE_FALSE(
        source.qp.post_send({.wr_id = id, .sges = {&sge, 1}, .destination = target.address()}));
  REQUIRE_FALSE(source.send(target.address(), 0, 100, 2));
  world.settle();
  CHECK(world.devices[0].counter("tx_datagrams") == 1);
  region.reset();
  memory.reset();
  for (int i = 0; i < 20; ++i) world.advance(1ms);
  const auto sends = drain(source.send_cq);
  REQUIRE(sends.size() == 3);
  CHECK(sends[0].wr_id == 0);
  CHECK(sends[0].status == WcStatus::local_protection_error);
  CHECK(sends[1].wr_id == 1);
  CHECK(sends[1].status == WcStatus::local_protection_error);
  CHECK(sends[2].wr_id == 2);
  CHECK(sends[2].status == WcStatus::success);
  const auto receives = drain(target.recv_cq);
  REQUIRE(receives.size() == 1);
  CHECK(receives[0].byte_count == 100);
}

TEST_CASE("a send from memory it may not use fails, and those around it go out") {
  World world;
  Device& device = world.add_device();
  Party source(device);
  Party target(world.add_device());
  target.post_receives(8, 100);
  const ProtectionDomain other_domain(device);
  const MemoryRegion foreign(other_domain, std::span(source.memory));
  const MemoryRegion read_only(source.pd, std::span(source.memory), Access::none);
  const std::array<Sge, 6> sges = {
      source.mr.sge(0, 10), Sge{source.memory.data(), 10, 0},
      foreign.sge(0, 10),   source.mr.sge(source.memory.size() - 9, 10),
      read_only.sge(0, 10), source.mr.sge(10, 10)};
  for (uint64_t id = 0; id < sges.size(); ++id)
    REQUIRE_FALSE(source.qp.post_send(
        {.wr_id = id, .sges = {&sges[id], 1}, .destination = target.address()}));
  world.settle();
  const auto sends = drain(source.send_cq);
  REQUIRE(sends.size() == sges.size());
  for (uint64_t id = 0; id < sges.size(); ++id) {
    CAPTURE(id);
    const bool good = id == 0 || id >= 4;
    CHECK(sends[id].wr_id == id);
    CHECK(sends[id].status == (good ? WcStatus::success : WcStatus::local_protection_error));
  }
  CHECK(drain(target.recv_cq).size() == 3);
}
