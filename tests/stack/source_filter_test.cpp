// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/source_filters.h"

#include "stack/ud_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

SourceFilter filter(const char* network, uint8_t prefix_length, uint16_t first_port = 0,
                    uint16_t last_port = 65535) {
  return {.network = Address::parse(network),
          .prefix_length = prefix_length,
          .first_port = first_port,
          .last_port = last_port};
}

bool admits(const SourceFilter& one, const char* from) {
  return rnic::SourceFilters(std::span(&one, 1)).admit(Address::parse(from));
}

}  // namespace

TEST_CASE("without filters every source is heard") {
  const rnic::SourceFilters everyone;
  for (const char* from : {"1.2.3.4:5", "[::1]:0", "255.255.255.255:65535"})
    CHECK(everyone.admit(Address::parse(from)));
}

TEST_CASE("a filter's prefix is checked bit by bit") {
  CHECK(admits(filter("10.1.2.3", 32), "10.1.2.3:7"));
  CHECK_FALSE(admits(filter("10.1.2.3", 32), "10.1.2.2:7"));
  CHECK(admits(filter("10.1.2.3", 31), "10.1.2.2:7"));
  CHECK(admits(filter("10.1.2.3", 9), "10.127.0.1:7"));
  CHECK_FALSE(admits(filter("10.1.2.3", 9), "10.128.0.1:7"));
  CHECK(admits(filter("10.1.2.3", 0), "203.0.113.9:7"));
  CHECK(admits(filter("2001:db8:0:0:8000::", 65), "[2001:db8::ffff:0:0:1]:7"));
  CHECK_FALSE(admits(filter("2001:db8:0:0:8000::", 65), "[2001:db8::7fff:0:0:1]:7"));
  CHECK(admits(filter("2001:db8::", 32), "[2001:db8:ffff::1]:7"));
  CHECK_FALSE(admits(filter("2001:db8::", 32), "[2001:db9::1]:7"));
  CHECK_FALSE(admits(filter("2001:db8::1", 128), "[2001:db8::2]:7"));
}

TEST_CASE("a filter admits the ports of its range, both ends included") {
  const SourceFilter ports = filter("10.0.0.0", 8, 1000, 1002);
  CHECK_FALSE(admits(ports, "10.0.0.1:999"));
  CHECK(admits(ports, "10.0.0.1:1000"));
  CHECK(admits(ports, "10.0.0.1:1002"));
  CHECK_FALSE(admits(ports, "10.0.0.1:1003"));
  CHECK_FALSE(admits(ports, "11.0.0.1:1001"));
}

TEST_CASE("a filter hears one address family, even with an empty prefix") {
  CHECK_FALSE(admits(filter("0.0.0.0", 0), "[::1]:7"));
  CHECK_FALSE(admits(filter("::", 0), "127.0.0.1:7"));
  CHECK(admits(filter("::", 0), "[::1]:7"));
}

TEST_CASE("a filter with a scope hears that link only") {
  CHECK(admits(filter("fe80::%1", 10), "[fe80::5%1]:7"));
  CHECK_FALSE(admits(filter("fe80::%1", 10), "[fe80::5%2]:7"));
  CHECK(admits(filter("fe80::", 10), "[fe80::5%2]:7"));
}

TEST_CASE("of several filters one is enough") {
  const SourceFilter both[] = {filter("10.0.0.1", 32), filter("192.168.0.0", 16)};
  const rnic::SourceFilters filters(both);
  CHECK(filters.admit(Address::parse("10.0.0.1:1")));
  CHECK(filters.admit(Address::parse("192.168.7.7:1")));
  CHECK_FALSE(filters.admit(Address::parse("10.0.0.2:1")));
}

TEST_CASE("a filter that makes no sense is refused with a message") {
  const auto refused = [](const SourceFilter& wrong) {
    return refusal([&] { rnic::SourceFilters(std::span(&wrong, 1)); });
  };
  CHECK(refused(filter("10.0.0.1", 33)) == Errc::invalid_argument);
  CHECK(refused(filter("::1", 129)) == Errc::invalid_argument);
  CHECK(refused(filter("10.0.0.1", 8, 5, 4)) == Errc::invalid_argument);
  CHECK_FALSE(refused(filter("::1", 128, 4, 4)));
}

TEST_CASE("a queue pair hears only the sources that its filters admit") {
  Scene scene({.datagram = {.sources = {filter("10.0.0.0", 24)}}});
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.whole(1));  // from 10.0.1.1
  CHECK(scene.received().empty());
  CHECK(scene.count("drop_filtered") == 1);
  CHECK(scene.count("rx_datagrams") == 1);

  Device& near = scene.world.add_device();  // 10.0.0.2
  Party friendly(near);
  REQUIRE_FALSE(friendly.send(scene.target.address(), 0, 10));
  scene.world.settle();
  CHECK(scene.received().size() == 1);
}

TEST_CASE("a filtered datagram is checked by nothing else") {
  Scene scene({.datagram = {.sources = {filter("10.0.0.0", 24)}}});
  scene.target.post_receives(4, 100);
  Segment broken = scene.whole(1);
  broken.crc_error = 1;
  scene.send(scene.stranger, broken);
  scene.stranger.send(scene.target.address(), std::vector<std::byte>(3));
  scene.world.settle();
  CHECK(scene.count("drop_filtered") == 2);
  CHECK(drops(scene.device) == 2);
}

TEST_CASE("filters can be changed at any time, and bad ones change nothing") {
  Scene scene;
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.received().size() == 1);

  const SourceFilter elsewhere = filter("10.9.0.0", 16);
  scene.target.qp.set_sources({&elsewhere, 1});
  scene.send(scene.stranger, scene.whole(2));
  CHECK(scene.received().empty());

  const SourceFilter wrong = filter("10.0.1.1", 40);
  CHECK(refusal([&] { scene.target.qp.set_sources({&wrong, 1}); }) == Errc::invalid_argument);
  scene.send(scene.stranger, scene.whole(3));
  CHECK(scene.received().empty());

  const SourceFilter him =
      filter("10.0.1.1", 32, scene.stranger.address().port(), scene.stranger.address().port());
  scene.target.qp.set_sources({&him, 1});
  scene.send(scene.stranger, scene.whole(4));
  CHECK(scene.received().size() == 1);
  Stranger neighbour(scene.world);
  scene.send(neighbour, scene.whole(5));
  CHECK(scene.received().empty());

  scene.target.qp.set_sources({});
  scene.send(neighbour, scene.whole(6));
  CHECK(scene.received().size() == 1);
  CHECK(scene.count("drop_filtered") == 3);
}

TEST_CASE("a queue pair with filters that make no sense is not made") {
  World world;
  Device& device = world.add_device();
  const DatagramOptions options{.sources = {filter("10.0.0.1", 33)}};
  CHECK(refusal([&] { Party(device, {.datagram = options}); }) == Errc::invalid_argument);
}
