// SPDX-License-Identifier: Apache-2.0
// The blocks of docs/datagrams.md, run on a network in memory.
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

struct Gap {
  uint64_t offset;
  uint64_t length;
};

/// The treatment of bytes of a frame that did not come.
std::vector<Gap> concealed;
void conceal(std::span<std::byte> frame, uint64_t offset, uint64_t length) {
  REQUIRE(offset + length <= frame.size());
  concealed.push_back({offset, length});
}

/// A network that loses the second datagram.
World::Wrap losing_the_second(World& world) {
  return [&world](World::Link link) -> World::Link {
    llp::Impairment impairment;
    impairment.drop_if = llp::drop_nth(1);
    return std::make_unique<llp::ImpairedDatagramLink>(std::move(link), impairment, world.clock);
  };
}

void show_gaps(CompletionQueue& cq, std::span<std::byte> frame) {
#include "datagrams/write-record.inc"
}

void join_groups(QueuePair& qp){
#include "datagrams/groups-broadcast-and-multicast.inc"
}

MemoryRegion group_region(const ProtectionDomain& pd, std::span<std::byte> memory) {
#include "datagrams/groups-broadcast-and-multicast-2.inc"
  return region;
}

void listen_to_the_lab(QueuePair& qp) {
#include "datagrams/whom-to-listen-to.inc"
}

}  // namespace

TEST_CASE("docs: a Write-Record's gaps are those of the datagram that got lost") {
  World world;
  Party camera(world.add_device(losing_the_second(world)));
  Party viewer(world.add_device());
  const MemoryRegion screen(viewer.pd, std::span(viewer.memory),
                            Access::local_write | Access::remote_write);
  REQUIRE_FALSE(camera.qp.post_write_record({.sges = camera.mr.sge(0, 5000),
                                             .destination = viewer.address(),
                                             .remote = {screen.rkey(), screen.base()}}));
  world.settle();
  world.advance(100ms);  // record_timeout
  concealed.clear();
  show_gaps(viewer.recv_cq, viewer.memory);
  REQUIRE(concealed.size() == 1);
  CHECK(concealed[0].offset == concealed[0].length);  // the second of equal segments
}

TEST_CASE("docs: a queue pair that joined hears its groups") {
  World world;
  const DatagramOptions port{.port = 4000};
  Party sender(world.add_device(), {.datagram = port});
  Party member(world.add_device(), {.datagram = port});
  member.post_receives(4, 100);
  join_groups(member.qp);
  for (const char* group : {"239.1.2.3:4000", "239.1.2.4:4000", "255.255.255.255:4000"})
    REQUIRE_FALSE(sender.send(Address::parse(group), 0, 10));
  world.settle();
  CHECK(drain(member.recv_cq).size() == 3);
}

TEST_CASE("docs: a Write-Record to a group is placed in each member's region of the chosen STag") {
  World world;
  const DatagramOptions port{.port = 4000};
  Party sender(world.add_device(), {.datagram = port});
  Party member(world.add_device(), {.datagram = port});
  join_groups(member.qp);
  const MemoryRegion region = group_region(member.pd, member.memory);
  sender.fill(pattern(100, 1));
  REQUIRE_FALSE(sender.qp.post_write_record({.sges = sender.mr.sge(0, 100),
                                             .destination = Address::parse("239.1.2.3:4000"),
                                             .remote = {.stag = 0x5eed1200, .offset = 50}}));
  world.settle();
  REQUIRE(drain(member.recv_cq).size() == 1);
  CHECK(same(member.bytes(50, 100), sender.bytes(0, 100)));
}

TEST_CASE("docs: with a filter what comes from elsewhere is dropped") {
  World world;
  Device& device = world.add_device();
  Party sender(world.add_device()), target(device);
  target.post_receives(1, 100);
  listen_to_the_lab(target.qp);
  REQUIRE_FALSE(sender.send(target.address(), 0, 10));
  world.settle();
  CHECK(drain(target.recv_cq).empty());
  CHECK(device.counter("drop_filtered") == 1);
}
