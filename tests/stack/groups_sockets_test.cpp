// SPDX-License-Identifier: Apache-2.0
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

/// Groups over real sockets: several addresses of this host's loopback, on one port.

namespace {

const Address kGroup = Address::parse("239.77.3.1");
const Address kSubnet = Address::parse("127.255.255.255");

/// 127.0.0.1 sends; 127.0.0.2, .3 and .4 are on the port that the group has.
struct Hosts {
  explicit Hosts(DatagramOptions datagram = {}) : sender(devices[0], {.datagram = datagram}) {
    datagram.port = sender.address().port();
    for (size_t i = 1; i < devices.size(); ++i) {
      members.push_back(std::make_unique<Party>(devices[i], PartyOptions{.datagram = datagram}));
      members.back()->post_receives(4, 16'000);
    }
  }

  Address on_port(const Address& group) const { return group.with_port(sender.address().port()); }
  void send(const Address& group, size_t size) {
    sender.fill(pattern(size, ++seed));
    REQUIRE_FALSE(sender.send(on_port(group), 0, size));
    const auto done = await(sender.send_cq, 1);
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == WcStatus::success);
  }
  /// Whether the next thing that comes to the member is what was sent.
  bool gets(size_t index, size_t size) {
    Party& member = *members[index];
    const auto came = await(member.recv_cq, 1);
    return came.size() == 1 && came[0].byte_count == size && came[0].source == sender.address() &&
           same(member.bytes(came[0].wr_id * 16'000, size), sender.bytes(0, size));
  }

  std::array<Device, 4> devices{Device::open("127.0.0.1"), Device::open("127.0.0.2"),
                                Device::open("127.0.0.3"), Device::open("127.0.0.4")};
  Party sender;
  std::vector<std::unique_ptr<Party>> members;
  uint64_t seed = 0;
};

}  // namespace

TEST_CASE("a Send to a multicast group reaches its members over sockets, until they leave",
          "[groups]") {
  Hosts hosts;
  hosts.members[0]->qp.join(kGroup);
  hosts.members[1]->qp.join(kGroup, "lo");
  hosts.send(kGroup, 10);
  hosts.send(hosts.members[2]->address(), 20);  // a member of no group
  CHECK(hosts.gets(2, 20));
  CHECK(drain(hosts.members[2]->recv_cq).empty());
  hosts.send(kGroup, 10);
  for (size_t i : {0U, 1U}) {
    const auto came = await(hosts.members[i]->recv_cq, 2);
    REQUIRE(came.size() == 2);
    CHECK(same(hosts.members[i]->bytes(16'000, 10), hosts.sender.bytes(0, 10)));
  }

  hosts.members[0]->qp.leave(kGroup);
  hosts.send(kGroup, 5000);
  CHECK(hosts.gets(1, 5000));
  hosts.send(hosts.members[0]->address(), 30);  // the first that comes after the group's
  CHECK(hosts.gets(0, 30));
}

TEST_CASE("queue pairs on one address hear a group on one port, which is none of theirs",
          "[groups]") {
  const Device device = Device::open("127.0.0.1");
  Party sender(device);
  std::vector<std::unique_ptr<Party>> members;
  for (int i = 0; i < 3; ++i) {
    members.push_back(std::make_unique<Party>(device));
    members.back()->post_receives(2, 5000);
  }
  const Address group = kGroup.with_port(members[0]->address().port() == 47123 ? 47124 : 47123);
  const Address everyone = kSubnet.with_port(group.port());
  for (const auto& member : members) {
    member->qp.join(group, "lo");
    member->qp.join(everyone);
  }
  sender.fill(pattern(5000, 1));
  for (const Address& to : {group, everyone}) {
    CAPTURE(to.to_string());
    REQUIRE_FALSE(sender.send(to, 0, 5000));
    CHECK(await(sender.send_cq, 1).size() == 1);
    for (const auto& member : members) {
      const auto came = await(member->recv_cq, 1);
      REQUIRE(came.size() == 1);
      CHECK(came[0].source == sender.address());
      CHECK(same(member->bytes(came[0].wr_id * 5000, 5000), sender.bytes(0, 5000)));
    }
  }
}

TEST_CASE("a group on a port that another socket has to itself is refused", "[groups]") {
  const Device device = Device::open("127.0.0.1");
  Party member(device);
  const RawSocket holder(kGroup.with_port(0));
  CHECK(refusal([&] { member.qp.join(holder.address(), "lo"); }) == Errc::address_in_use);
}

TEST_CASE("a Send to a subnet's broadcast address reaches those that joined it over sockets",
          "[groups]") {
  Hosts hosts;
  hosts.members[0]->qp.join(kSubnet);
  hosts.members[2]->qp.join(kSubnet);
  hosts.send(kSubnet, 3000);
  CHECK(hosts.gets(0, 3000));
  CHECK(hosts.gets(2, 3000));
  hosts.send(hosts.members[1]->address(), 40);
  CHECK(hosts.gets(1, 40));
}

TEST_CASE(
    "a Write-Record to a group is placed in three memories over sockets, in segments of any size",
    "[groups]") {
  constexpr STag kAgreed = 0x77777700;
  for (const bool jumbo : {false, true}) {
    CAPTURE(jumbo);
    Hosts hosts({.segment = jumbo ? 0U : 1400U, .jumbo = jumbo});
    std::vector<std::vector<std::byte>> memories(3, std::vector<std::byte>(60'000));
    std::vector<MemoryRegion> regions;
    for (size_t i = 0; i < 3; ++i) {
      hosts.members[i]->qp.join(kGroup);
      regions.push_back(MemoryRegion::with_stag(hosts.members[i]->pd, memories[i], kAgreed, 0,
                                                Access::local_write | Access::remote_write));
    }
    hosts.sender.fill(pattern(50'000, 9));
    const Sge sge = hosts.sender.mr.sge(0, 50'000);
    REQUIRE_FALSE(
        hosts.sender.qp.post_write_record({.sges = {sge},
                                           .destination = hosts.on_port(kGroup),
                                           .remote = {.stag = kAgreed, .offset = 10'000}}));
    for (size_t i = 0; i < 3; ++i) {
      const auto came = await(hosts.members[i]->recv_cq, 1);
      REQUIRE(came.size() == 1);
      CHECK(came[0].opcode == WcOpcode::recv_write_record);
      CHECK(came[0].validity.complete());
      CHECK(same(std::span(memories[i]).subspan(10'000), hosts.sender.bytes(0, 50'000)));
    }
  }
}

TEST_CASE("joining a group that the system does not let one join says why", "[groups]") {
  Hosts hosts;
  QueuePair& qp = hosts.members[0]->qp;
  CHECK(refusal([&] { qp.join(kGroup, "no-such-if"); }) == Errc::invalid_argument);
  CHECK(refusal([&] { qp.join(Address::parse("198.51.100.255")); }) == Errc::invalid_argument);
  CHECK(refusal([&] { qp.join(Address::parse("ff05::1")); }) == Errc::invalid_argument);
  RawSocket holder(hosts.on_port(kGroup));
  CHECK(refusal([&] { qp.join(kGroup); }) == Errc::address_in_use);
}

TEST_CASE("a queue pair whose multicast interface does not exist is not made", "[groups]") {
  Device device = Device::open("127.0.0.1");
  CHECK(refusal([&] { Party(device, {.datagram = {.group = {.interface = "no-such-if"}}}); }) ==
        Errc::invalid_argument);
}

TEST_CASE("a device on all addresses is in groups, and does not hear broadcasts it has not joined",
          "[groups]") {
  Device everywhere = Device::open("0.0.0.0");
  Device here = Device::open("127.0.0.1");
  Party sender(here);
  Party member(everywhere);
  member.post_receives(4, 1000);
  const uint16_t port = member.address().port();
  member.qp.join(kGroup, "lo");
  REQUIRE_FALSE(sender.send(kSubnet.with_port(port), 0, 10));
  REQUIRE_FALSE(sender.send(kGroup.with_port(port), 0, 20));
  REQUIRE_FALSE(sender.send(Address::loopback(AddressFamily::ipv4, port), 0, 30));
  const auto came = await(member.recv_cq, 2);
  REQUIRE(came.size() == 2);
  CHECK(came[0].byte_count + came[1].byte_count == 50);
  member.qp.join(kSubnet);
  REQUIRE_FALSE(sender.send(kSubnet.with_port(port), 0, 40));
  const auto broadcast = await(member.recv_cq, 1);
  REQUIRE(broadcast.size() == 1);
  CHECK(broadcast[0].byte_count == 40);
}

TEST_CASE("jumbo datagrams carry a message in few, where the default cuts it to the path MTU",
          "[groups]") {
  Device device = Device::open("127.0.0.1");
  for (const bool jumbo : {false, true}) {
    CAPTURE(jumbo);
    PartyOptions options{.memory = 400'000, .datagram = {.jumbo = jumbo}};
    Party a(device, options);
    Party b(device, options);
    const uint64_t before = device.counter("tx_datagrams");
    for (int i = 0; i < 2; ++i) REQUIRE_FALSE(b.post_recv(1, 0, 130'000));
    REQUIRE_FALSE(a.send(b.address(), 0, 130'000));
    REQUIRE(await(b.recv_cq, 1).size() == 1);
    // The loopback's MTU is that of a jumbo datagram.
    CHECK(device.counter("tx_datagrams") - before == 2);
  }
}

namespace {

/// Whether the next thing that comes to the member is `size` bytes from `source`.
bool came_from(Party& member, const Address& source, size_t size) {
  const auto came = await(member.recv_cq, 1);
  return came.size() == 1 && came[0].source == source && came[0].byte_count == size &&
         !member.post_recv(came[0].wr_id, came[0].wr_id * 1000, 1000);
}

}  // namespace

TEST_CASE("members that share an address and port each get what is sent to the group, once",
          "[groups]") {
  const Address group = GENERATE(kGroup, kSubnet);
  const char* host = GENERATE("127.0.0.2", "0.0.0.0");
  CAPTURE(group.to_string(), host);
  Device from = Device::open("127.0.0.1");
  Device one = Device::open(host);
  Device other = Device::open(host);  // as another process would have
  Party sender(from);
  Party a(one, {.datagram = {.share_port = true}});
  const PartyOptions options{.datagram = {.port = a.address().port(), .share_port = true}};
  Party b(one, options);
  Party c(other, options);
  Party* const members[] = {&a, &b, &c};
  for (Party* member : members) {
    CHECK(member->address() == a.address());
    member->post_receives(4, 1000);
    member->qp.join(group, "lo");
  }
  const Address to = group.with_port(a.address().port());
  for (size_t size : {10U, 20U, 30U}) {
    REQUIRE_FALSE(sender.send(to, 0, size));
    for (Party* member : members) CHECK(came_from(*member, sender.address(), size));
  }
  b.qp.leave(group, "lo");
  for (size_t size : {40U, 50U}) {
    REQUIRE_FALSE(sender.send(to, 0, size));
    for (Party* member : {&a, &c}) CHECK(came_from(*member, sender.address(), size));
  }
  for (Party* member : members) CHECK(drain(member->recv_cq).empty());
}

TEST_CASE("a datagram to a shared address comes to one of the queue pairs that share it",
          "[groups]") {
  Device from = Device::open("127.0.0.1");
  Device device = Device::open("127.0.0.2");
  Party sender(from);
  Party a(device, {.datagram = {.share_port = true}});
  Party b(device, {.datagram = {.port = a.address().port(), .share_port = true}});
  a.post_receives(4, 1000);
  b.post_receives(4, 1000);
  REQUIRE_FALSE(sender.send(a.address(), 0, 10));
  size_t came = 0;
  const auto have_come = [&](size_t count) {
    return eventually([&] {
      came += drain(a.recv_cq).size() + drain(b.recv_cq).size();
      return came >= count;
    });
  };
  REQUIRE(have_come(1));
  REQUIRE_FALSE(sender.send(a.address(), 0, 10));
  REQUIRE(have_come(2));
  CHECK(came == 2);
}

TEST_CASE("an address and port are shared only where all that have them want it", "[groups]") {
  Device device = Device::open("127.0.0.2");
  Party shared(device, {.datagram = {.share_port = true}});
  Party alone(device);
  const auto refused = [&](DatagramOptions datagram) {
    return refusal([&] { Party(device, {.datagram = std::move(datagram)}); });
  };
  CHECK(refused({.port = shared.address().port()}) == Errc::address_in_use);
  CHECK(refused({.port = alone.address().port(), .share_port = true}) == Errc::address_in_use);
  CHECK_FALSE(refused({.port = shared.address().port(), .share_port = true}));
  CHECK(refusal([&] { Party(device, {.datagram = {.share_port = true}, .type = QpType::rd}); }) ==
        Errc::invalid_argument);
}
