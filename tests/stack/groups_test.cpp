// SPDX-License-Identifier: Apache-2.0
#include "stack/ud_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// Groups over the in-memory network: multicast and broadcast, from join to leave.

namespace {

constexpr uint16_t kPort = 4000;
const Address kGroup = Address::parse("239.1.2.3");
const Address kEveryone = Address::parse("255.255.255.255");

PartyOptions on_port(const GroupOptions& group = {}) {
  return {.memory = 256 << 10, .datagram = {.port = kPort, .group = group}};
}

/// A sender and three receivers, each on a device, and so a host, of its own.
struct Club {
  explicit Club(const GroupOptions& group = {})
      : sender(world.add_device(), on_port(group)),
        members{Party(world.add_device(), on_port()), Party(world.add_device(), on_port()),
                Party(world.add_device(), on_port())} {
    for (Party& member : members) member.post_receives(8, 20'000);
  }

  void send(const Address& group, size_t size) {
    REQUIRE_FALSE(sender.send(group.with_port(kPort), 0, size));
    world.settle();
    const auto done = drain(sender.send_cq);
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == WcStatus::success);
  }
  /// Whether the member has the message and nothing else; it comes into the receive at `slot`.
  bool has(Party& member, size_t size, size_t slot = 0) {
    const auto came = drain(member.recv_cq);
    return came.size() == 1 && came[0].status == WcStatus::success && came[0].byte_count == size &&
           came[0].source == sender.address() &&
           same(member.bytes(slot * 20'000, size), sender.bytes(0, size));
  }
  uint64_t count(size_t member, const char* counter) {
    return world.devices[member + 1].counter(counter);
  }

  World world;
  Party sender;
  std::array<Party, 3> members;
};

}  // namespace

TEST_CASE("a Send to a multicast group reaches every member, of one segment and of many") {
  Club club;
  for (Party& member : club.members) member.qp.join(kGroup);
  size_t slot = 0;
  for (size_t size : {size_t{0}, size_t{100}, size_t{20'000}}) {
    CAPTURE(size);
    club.sender.fill(pattern(size, size));
    club.send(kGroup, size);
    for (Party& member : club.members) CHECK(club.has(member, size, slot));
    ++slot;
  }
}

TEST_CASE("a Send to a broadcast address reaches those that joined it") {
  for (const Address& everyone : {kEveryone, Address::parse("10.0.0.255")}) {
    Club club;
    club.members[0].qp.join(everyone);
    club.members[2].qp.join(everyone);
    club.sender.fill(pattern(5000, 1));
    club.send(everyone, 5000);
    CHECK(club.has(club.members[0], 5000));
    CHECK(drain(club.members[1].recv_cq).empty());
    CHECK(club.has(club.members[2], 5000));
  }
}

TEST_CASE("a group that was left is heard no more, and can be joined again") {
  Club club;
  for (Party& member : club.members) member.qp.join(kGroup);
  club.members[1].qp.leave(kGroup);
  club.send(kGroup, 100);
  CHECK(club.has(club.members[0], 100));
  CHECK(drain(club.members[1].recv_cq).empty());
  CHECK(club.count(1, "rx_datagrams") == 0);

  club.members[1].qp.join(kGroup);
  club.send(kGroup, 100);
  CHECK(club.has(club.members[1], 100));
}

TEST_CASE("a member of groups still hears datagrams to its own address") {
  Club club;
  Party& member = club.members[0];
  member.qp.join(kGroup);
  member.qp.join(kEveryone);
  size_t slot = 0;
  for (const Address& to : {member.address(), kGroup, kEveryone}) {
    club.sender.fill(pattern(1000, slot));
    club.send(to, 1000);
    CHECK(club.has(member, 1000, slot++));
  }
}

TEST_CASE("a member hears its own messages to the group, unless loopback is off") {
  for (bool loopback : {true, false}) {
    Club club({.loopback = loopback});
    club.sender.qp.join(kGroup);
    club.members[0].qp.join(kGroup);
    club.sender.post_receives(1, 20'000);
    club.send(kGroup, 100);
    CHECK(drain(club.sender.recv_cq).size() == (loopback ? 1U : 0U));
    CHECK(club.has(club.members[0], 100));
  }
}

TEST_CASE("a group cannot be joined twice, or left without having been joined") {
  Club club;
  QueuePair& qp = club.members[0].qp;
  CHECK(refusal([&] { qp.leave(kGroup); }) == Errc::invalid_argument);
  qp.join(kGroup);
  CHECK(refusal([&] { qp.join(kGroup); }) == Errc::invalid_argument);
  CHECK(refusal([&] { qp.join(kGroup.with_port(kPort)); }) == Errc::invalid_argument);
  CHECK(refusal([&] { qp.leave(kGroup.with_port(7)); }) == Errc::invalid_argument);
  CHECK(refusal([&] { qp.leave(kGroup, "eth0"); }) == Errc::invalid_argument);
  qp.leave(kGroup);
  CHECK(refusal([&] { qp.leave(kGroup); }) == Errc::invalid_argument);
}

TEST_CASE("a group has a port of its own where one is named, and is heard there alone") {
  constexpr uint16_t kGroupPort = 5000;
  Club club;
  Party& member = club.members[0];
  member.qp.join(kGroup.with_port(kGroupPort));
  club.sender.fill(pattern(20'000, 1));
  const auto send = [&](uint16_t port, size_t size) {
    REQUIRE_FALSE(club.sender.send(kGroup.with_port(port), 0, size));
    club.world.settle();
    CHECK(drain(club.sender.send_cq).size() == 1);
  };
  send(kPort, 100);
  CHECK(drain(member.recv_cq).empty());
  send(kGroupPort, 20'000);
  CHECK(club.has(member, 20'000));

  member.qp.join(kGroup);  // the same group on the queue pair's port is another
  send(kPort, 200);
  CHECK(club.has(member, 200, 1));
  member.qp.leave(kGroup.with_port(kGroupPort));
  send(kGroupPort, 300);
  CHECK(drain(member.recv_cq).empty());
  send(kPort, 400);
  CHECK(club.has(member, 400, 2));
}

TEST_CASE("members of a group with a port of its own have ports of their own") {
  World world;
  Party sender(world.add_device());
  std::vector<std::unique_ptr<Party>> members;
  for (int i = 0; i < 3; ++i) {
    members.push_back(std::make_unique<Party>(world.add_device()));
    members.back()->post_receives(1, 100);
    members.back()->qp.join(kGroup.with_port(5000));
  }
  sender.fill(pattern(100, 1));
  REQUIRE_FALSE(sender.send(kGroup.with_port(5000), 0, 100));
  world.settle();
  for (const auto& member : members) {
    const auto came = drain(member->recv_cq);
    REQUIRE(came.size() == 1);
    CHECK(came[0].source == sender.address());
    CHECK(same(member->bytes(0, 100), sender.bytes(0, 100)));
  }
}

TEST_CASE("an address that is no group cannot be joined") {
  Club club;
  for (const char* text : {"10.0.0.3", "0.0.0.0", "::1"}) {
    CAPTURE(text);
    CHECK(refusal([&] { club.sender.qp.join(Address::parse(text)); }) == Errc::invalid_argument);
  }
}

TEST_CASE("groups are not for queue pairs of type rc and rd") {
  World world;
  Device& device = world.add_device();
  ProtectionDomain pd(device);
  CompletionQueue cq(device, 4);
  for (QpType type : {QpType::rc, QpType::rd}) {
    QueuePair qp(pd, {.type = type, .send_cq = cq, .recv_cq = cq});
    CHECK(refusal([&] { qp.join(kGroup); }) == Errc::unsupported_operation);
    CHECK(refusal([&] { qp.leave(kGroup); }) != std::error_code());
  }
}

TEST_CASE("a Read from a group, and anything over RD to one, is an invalid destination") {
  Club club;
  Party& sender = club.sender;
  const Sge sge = sender.mr.sge(0, 100);
  for (const Address& group : {kGroup, kEveryone}) {
    CHECK(sender.qp.post_read({.sges = {sge}, .destination = group.with_port(kPort)}) ==
          Errc::invalid_destination);
    CompletionQueue cq(club.world.devices[0], 4);
    QueuePair rd(sender.pd, {.type = QpType::rd, .send_cq = cq, .recv_cq = cq});
    CHECK(rd.post_send({.sges = {&sge, 1}, .destination = group.with_port(kPort)}) ==
          Errc::invalid_destination);
  }
}

TEST_CASE("a fault in what came to a group is counted and kept, and nothing is answered") {
  Club club;
  Party& member = club.members[0];
  member.qp.join(kGroup);
  // A Write-Record to an STag that nobody has.
  const Sge sge = club.sender.mr.sge(0, 100);
  REQUIRE_FALSE(club.sender.qp.post_write_record(
      {.sges = {sge}, .destination = kGroup.with_port(kPort), .remote = {.stag = 0x1234500}}));
  club.world.settle();
  CHECK(club.count(0, "drop_stag") == 1);
  CHECK(club.count(0, "tx_datagrams") == 0);
  CHECK_FALSE(club.sender.qp.poll_error());
  const auto noted = member.qp.poll_error();
  REQUIRE(noted);
  CHECK(noted->peer == club.sender.address());
  // To the member alone the same is answered.
  REQUIRE_FALSE(club.sender.qp.post_write_record(
      {.sges = {sge}, .destination = member.address(), .remote = {.stag = 0x1234500}}));
  club.world.settle();
  CHECK(club.count(0, "tx_datagrams") == 1);
  CHECK(club.sender.qp.poll_error());
}

TEST_CASE("a Read Request that came to a group is neither answered nor challenged") {
  Club club;
  Party& member = club.members[0];
  member.qp.join(kGroup);
  MemoryRegion readable(member.pd, std::span(member.memory), Access::remote_read);
  Stranger stranger(club.world, kPort);
  stranger.send(kGroup.with_port(kPort), {.msn = 1,
                                          .opcode = kReadRequest,
                                          .sink_stag = 0x500,
                                          .read_length = 1000,
                                          .source_stag = readable.rkey(),
                                          .source_offset = readable.base()});
  club.world.settle();
  CHECK(club.count(0, "tx_datagrams") == 0);
  CHECK(club.count(0, "reads_served") == 0);
}

TEST_CASE("one Write-Record to a group is placed in the memory of each, under a chosen STag") {
  constexpr STag kAgreed = 0xABCDEF01;
  Club club;
  std::vector<std::vector<std::byte>> memories(3, std::vector<std::byte>(50'000));
  std::vector<MemoryRegion> regions;
  for (size_t i = 0; i < 3; ++i) {
    club.members[i].qp.join(kGroup);
    regions.push_back(MemoryRegion::with_stag(club.members[i].pd, memories[i], kAgreed, 1 << 20,
                                              Access::local_write | Access::remote_write));
  }
  club.sender.fill(pattern(40'000, 3));
  const Sge sge = club.sender.mr.sge(0, 40'000);
  REQUIRE_FALSE(club.sender.qp.post_write_record(
      {.sges = {sge},
       .destination = AddressHandle(club.sender.pd, kGroup.with_port(kPort)),
       .remote = {.stag = kAgreed, .offset = (1 << 20) + 500},
       .immediate = 77}));
  club.world.settle();
  for (size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    const auto came = drain(club.members[i].recv_cq);
    REQUIRE(came.size() == 1);
    CHECK(came[0].opcode == WcOpcode::recv_write_record);
    CHECK(came[0].source == club.sender.address());
    CHECK(came[0].stag == kAgreed);
    CHECK(came[0].tagged_offset == (1 << 20) + 500);
    CHECK(came[0].immediate == 77);
    CHECK(came[0].validity.complete());
    CHECK(same(std::span(memories[i]).subspan(500, 40'000), club.sender.bytes(0, 40'000)));
  }
}

TEST_CASE("each member of a group has a validity map of its own") {
  constexpr STag kAgreed = 0xABCDEF01;
  World world;
  std::vector<std::unique_ptr<Party>> parties;
  std::vector<std::vector<std::byte>> memories(2, std::vector<std::byte>(50'000));
  std::vector<MemoryRegion> regions;
  for (size_t i = 0; i < 2; ++i) {
    Party& party = *parties.emplace_back(std::make_unique<Party>(world.add_device(), on_port()));
    regions.push_back(MemoryRegion::with_stag(party.pd, memories[i], kAgreed, 0,
                                              Access::local_write | Access::remote_write));
  }
  // The first hears both segments, the other joins too late for the first.
  Stranger stranger(world, kPort);
  const auto segment = [&](uint32_t offset) {
    return Segment{.msn = 9,
                   .offset = offset,
                   .last = offset != 0,
                   .payload = pattern(1000, offset),
                   .opcode = kWriteRecord,
                   .stag = kAgreed,
                   .tagged_offset = offset,
                   .message_length = 2000};
  };
  for (size_t i = 0; i < 2; ++i) {
    parties[i]->qp.join(kGroup);
    stranger.send(kGroup.with_port(kPort), segment(i == 0 ? 0 : 1000));
    world.settle();
  }
  world.settle();
  world.advance(1s);
  const auto whole = drain(parties[0]->recv_cq);
  const auto half = drain(parties[1]->recv_cq);
  REQUIRE(whole.size() == 1);
  REQUIRE(half.size() == 1);
  CHECK(whole[0].validity.complete());
  CHECK(half[0].valid_bytes == 1000);
  CHECK(half[0].validity.first_gap().offset == 0);
  CHECK(half[0].validity.first_gap().length == 1000);
}

TEST_CASE("datagrams that overflow at a group are counted with the rest") {
  World world({.queue_datagrams = 4});
  Party member(world.add_device(), on_port());
  member.post_receives(8, 100);
  member.qp.join(kGroup);
  Stranger stranger(world, kPort);
  for (uint32_t i = 0; i < 6; ++i)
    stranger.send(kGroup.with_port(kPort), {.msn = i, .payload = pattern(10, i)});
  world.settle();
  CHECK(drain(member.recv_cq).size() == 4);
  CHECK(world.devices[0].counter("rx_overflow") == 2);
}

TEST_CASE("filters and Q_Keys check what comes to a group as well") {
  Club club;
  const SourceFilter elsewhere{.network = Address::parse("10.9.0.0"), .prefix_length = 16};
  Party& member = club.members[0];
  member.qp.join(kGroup);
  member.qp.set_sources({&elsewhere, 1});
  club.send(kGroup, 100);
  CHECK(drain(member.recv_cq).empty());
  CHECK(club.count(0, "drop_filtered") == 1);
}

TEST_CASE("a queue pair that ends leaves its groups") {
  World world;
  Device& device = world.add_device();
  Party sender(world.add_device(), on_port());
  {
    Party member(device, on_port());
    member.qp.join(kGroup);
    member.qp.join(kEveryone);
  }
  REQUIRE_FALSE(sender.send(kGroup.with_port(kPort), 0, 100));
  world.settle();
  CHECK(device.counter("rx_datagrams") == 0);
  Party again(device, on_port());
  again.post_receives(1, 100);
  again.qp.join(kGroup);
  REQUIRE_FALSE(sender.send(kGroup.with_port(kPort), 0, 100));
  world.settle();
  CHECK(drain(again.recv_cq).size() == 1);
}

TEST_CASE("a member that is reset and made ready again is still in its groups") {
  Club club;
  Party& member = club.members[0];
  member.qp.join(kGroup);
  member.qp.modify(QpState::reset);
  club.send(kGroup, 100);
  CHECK(club.count(0, "drop_state") == 1);
  member.qp.modify(QpState::init);
  member.qp.modify(QpState::rts);
  member.post_receives(1, 20'000);
  club.send(kGroup, 100);
  CHECK(club.has(member, 100));
}

TEST_CASE("groups are joined and left while messages come") {
  World world;
  Device& device = world.add_real_device(Progress::thread);
  Party sender(world.add_real_device(Progress::thread), on_port());
  PartyOptions options = on_port();
  options.capacity.max_recv_wr = 256;
  Party member(device, options);
  member.qp.join(kGroup);
  member.post_receives(200, 100);
  uint64_t sent = 0;
  for (int round = 0; round < 50; ++round) {
    REQUIRE_FALSE(sender.send(kGroup.with_port(kPort), 0, 100));
    ++sent;
    member.qp.join(kEveryone);
    REQUIRE_FALSE(sender.send(kGroup.with_port(kPort), 0, 100));
    ++sent;
    member.qp.leave(kEveryone);
  }
  CHECK(await(member.recv_cq, sent).size() == sent);
  CHECK(device.counter("rx_datagrams") == sent);
}

TEST_CASE("an address handle stands for its address, and is checked when it is made") {
  World world;
  Device& device = world.add_device();
  Party party(device);
  const AddressHandle handle(party.pd, Address::parse("10.0.0.7:5"));
  CHECK(handle.address() == Address::parse("10.0.0.7:5"));
  party.post_receives(1, 100);
  REQUIRE_FALSE(party.send(AddressHandle(party.pd, party.address()), 0, 10));
  world.settle();
  CHECK(drain(party.recv_cq).size() == 1);
  for (const char* wrong : {"10.0.0.7:0", "0.0.0.0:5", "[::1]:5"}) {
    CAPTURE(wrong);
    CHECK(refusal([&] { AddressHandle(party.pd, Address::parse(wrong)); }) ==
          Errc::invalid_destination);
  }
}

TEST_CASE("the incarnation that a group is shown is good for nothing at a member's own address") {
  World world;
  Party member(world.add_device(), on_port());
  member.post_receives(4, 20'000);
  member.qp.join(kGroup);
  Stranger sender(world, kPort);
  // Another member knows the incarnation, and forges the sender's address.
  const auto segment = [](uint32_t offset) {
    return Segment{
        .msn = 5, .offset = offset, .last = offset != 0, .payload = pattern(1000, offset)};
  };
  sender.send(kGroup.with_port(kPort), segment(0));
  sender.send(member.address(), segment(1000));
  world.settle();
  CHECK(drain(member.recv_cq).empty());
  sender.send(kGroup.with_port(kPort), segment(1000));
  world.settle();
  const auto came = drain(member.recv_cq);
  REQUIRE(came.size() == 1);
  CHECK(came[0].byte_count == 2000);
}
