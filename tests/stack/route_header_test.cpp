// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"
#include "stack/ud_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// Receives with room for a Global Route Header.

namespace {

constexpr size_t kHeader = 40;
constexpr size_t kSlot = 30'000;

PartyOptions with_headers(PartyOptions options = {}) {
  options.datagram.route_header = true;
  return options;
}

std::vector<std::byte> mapped(const char* ipv4) {
  std::vector<std::byte> address(16);
  address[10] = address[11] = std::byte{0xFF};
  const Address parsed = Address::parse(ipv4);
  std::ranges::copy(std::as_bytes(parsed.bytes()), address.begin() + 12);
  return address;
}

/// What a receive has to begin with, written from InfiniBand's layout.
std::vector<std::byte> header_of(const char* from, const char* to, size_t payload) {
  std::vector<std::byte> header(8);
  header[0] = std::byte{0x60};
  header[4] = static_cast<std::byte>(payload >> 8);
  header[5] = static_cast<std::byte>(payload);
  header[6] = std::byte{0x1B};
  header[7] = std::byte{0xFF};
  for (const char* address : {from, to}) {
    const auto bytes = mapped(address);
    header.insert(header.end(), bytes.begin(), bytes.end());
  }
  return header;
}

/// The next completion is that of this message, from 10.0.0.1 and in a receive at `offset`.
void check_message(Party& target, const Party& source, size_t offset, size_t size,
                   const char* to = "10.0.0.2") {
  CAPTURE(size);
  const auto came = drain(target.recv_cq);
  REQUIRE(came.size() == 1);
  CHECK(came[0].status == WcStatus::success);
  CHECK(came[0].byte_count == kHeader + size);
  CHECK(came[0].source == source.address());
  CHECK(same(target.bytes(offset, kHeader), header_of("10.0.0.1", to, size)));
  CHECK(same(target.bytes(offset + kHeader, size), std::span(source.memory).first(size)));
}

}  // namespace

TEST_CASE("route headers stand before messages of any size, of either type") {
  for (const QpType type : {QpType::ud, QpType::rd}) {
    CAPTURE(to_string(type));
    World world;
    Party source(world.add_device(), {.type = type});
    Party target(world.add_device(), with_headers({.type = type}));
    source.fill(pattern(kSlot, 3));
    for (const size_t size : {size_t{0}, size_t{1}, size_t{1400}, kSlot - kHeader}) {
      std::ranges::fill(target.memory, std::byte{0});
      REQUIRE_FALSE(target.post_recv(1, 0, kSlot));
      REQUIRE_FALSE(target.post_recv(2, kSlot, kSlot));  // a message in parts holds half of them
      REQUIRE_FALSE(source.send(target.address(), 0, size));
      world.settle();
      check_message(target, source, 0, size);
      CHECK(target.memory[kHeader + size] == std::byte{0});
      target.qp.modify(QpState::error);
      drain(target.recv_cq);
      target.qp.modify(QpState::reset);
      target.qp.modify(QpState::init);
      target.qp.modify(QpState::rts);
      if (type == QpType::rd) world.advance(60s);
    }
  }
}

TEST_CASE("route headers may be cut by the entries of a receive's list") {
  for (const QpType type : {QpType::ud, QpType::rd}) {
    CAPTURE(to_string(type));
    World world;
    Party source(world.add_device(), {.type = type});
    Party target(world.add_device(), with_headers({.type = type}));
    source.fill(pattern(5000, 3));
    // 7 bytes, none, 50 (of which 33 are the header's), and the rest; each apart from the others.
    const std::vector<Sge> list = {target.mr.sge(0, 7), target.mr.sge(0, 0), target.mr.sge(100, 50),
                                   target.mr.sge(200, 6000)};
    REQUIRE_FALSE(target.qp.post_recv({.wr_id = 1, .sges = list}));
    REQUIRE_FALSE(target.post_recv(2, 10'000, kSlot));
    REQUIRE_FALSE(source.send(target.address(), 0, 5000));
    world.settle();
    const auto came = drain(target.recv_cq);
    REQUIRE(came.size() == 1);
    CHECK(came[0].byte_count == 5040);
    const auto header = header_of("10.0.0.1", "10.0.0.2", 5000);
    CHECK(same(target.bytes(0, 7), std::span(header).first(7)));
    CHECK(target.memory[7] == std::byte{0});
    CHECK(same(target.bytes(100, 33), std::span(header).subspan(7)));
    CHECK(same(target.bytes(133, 17), source.bytes(0, 17)));
    CHECK(same(target.bytes(200, 4983), source.bytes(17, 4983)));
  }
}

TEST_CASE("route headers need 40 bytes: a shorter receive is too small for any message") {
  World world;
  Party source(world.add_device());
  Party target(world.add_device(), with_headers());
  REQUIRE_FALSE(target.post_recv(1, 0, kHeader - 1));
  for (const size_t size : {size_t{0}, size_t{1}, size_t{20'000}}) {
    REQUIRE_FALSE(source.send(target.address(), 0, size));
    world.settle();
  }
  CHECK(drain(target.recv_cq).empty());
  CHECK(world.devices[1].counter("drop_receive_too_small") >= 3);
  CHECK(same(target.bytes(0, kHeader), std::vector<std::byte>(kHeader)));
  CHECK(target.qp.query().posted_receives == 1);
}

TEST_CASE("route headers fill a receive of 40 bytes, which takes an empty message alone") {
  for (const QpType type : {QpType::ud, QpType::rd}) {
    CAPTURE(to_string(type));
    World world;
    Party source(world.add_device(), {.type = type});
    Party target(world.add_device(), with_headers({.type = type}));
    REQUIRE_FALSE(target.post_recv(1, 0, kHeader));
    REQUIRE_FALSE(source.send(target.address(), 0, 0));
    world.settle();
    check_message(target, source, 0, 0);
    REQUIRE_FALSE(target.post_recv(1, 0, kHeader));
    REQUIRE_FALSE(source.send(target.address(), 0, 1));
    world.settle();
    CHECK(drain(target.recv_cq).empty());
    CHECK(world.devices[1].counter("drop_receive_too_small") == 1);
  }
}

TEST_CASE("route headers that find no room over RD are refused, and told the sender") {
  RdScene scene({}, with_headers());
  REQUIRE_FALSE(scene.b.post_recv(1, 0, kHeader - 1));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 0));
  const auto done = scene.collect(scene.a.send_cq, 1, 5s);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::remote_operation_error);
}

TEST_CASE("route headers of messages in parts come once, in any order and with duplicates") {
  Scene scene(with_headers());
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.half(1, true));
  CHECK(drain(scene.target.recv_cq).empty());
  CHECK(same(scene.target.bytes(0, kHeader), std::vector<std::byte>(kHeader)));
  scene.send(scene.stranger, scene.half(1, true));
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(scene.stranger, scene.whole(1));
  const auto came = drain(scene.target.recv_cq);
  REQUIRE(came.size() == 1);
  CHECK(came[0].byte_count == kHeader + 20);
  CHECK(same(scene.target.bytes(0, kHeader), header_of("10.0.1.1", "10.0.0.1", 20)));
  std::vector<std::byte> message = pattern(10, 1);
  const auto again = pattern(10, 1);
  message.insert(message.end(), again.begin(), again.end());
  CHECK(same(scene.target.bytes(kHeader, 20), message));
}

TEST_CASE("route headers of a segment beyond its receive place nothing") {
  Scene scene(with_headers());
  REQUIRE_FALSE(scene.target.post_recv(1, 0, kHeader + 15));
  REQUIRE_FALSE(scene.target.post_recv(2, 1000, 100));
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(scene.stranger, scene.half(1, true));  // to byte 20
  CHECK(drain(scene.target.recv_cq).empty());
  CHECK(scene.count("drop_receive_too_small") == 1);
  CHECK(scene.target.memory[kHeader + 15] == std::byte{0});
  scene.send(scene.stranger, scene.whole(2, 15));
  const auto came = drain(scene.target.recv_cq);
  REQUIRE(came.size() == 1);
  CHECK(came[0].wr_id == 1);
  CHECK(came[0].byte_count == kHeader + 15);
}

TEST_CASE("route headers come without a loss over RD though datagrams are lost") {
  RdScene scene(Trouble{.seed = 5, .drop = 0.2, .reorder = 0.1, .duplicate = 0.1},
                with_headers({.memory = 256 << 10}));
  scene.a.fill(pattern(60'000, 7));
  for (int round = 0; round < 5; ++round) {
    std::ranges::fill(scene.b.memory, std::byte{0});
    REQUIRE_FALSE(scene.b.post_recv(1, 0, 70'000));
    REQUIRE_FALSE(scene.b.post_recv(2, 100'000, 70'000));
    for (int i = 0; i < 2; ++i) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 60'000));
    const auto came = scene.collect(scene.b.recv_cq, 2);
    REQUIRE(came.size() == 2);
    for (const size_t at : {size_t{0}, size_t{100'000}}) {
      CHECK(same(scene.b.bytes(at, kHeader), header_of("10.0.0.1", "10.0.0.2", 60'000)));
      CHECK(same(scene.b.bytes(at + kHeader, 60'000), scene.a.bytes(0, 60'000)));
    }
    REQUIRE(scene.collect(scene.a.send_cq, 2).size() == 2);
  }
}

TEST_CASE("route headers name the group that a message was sent to") {
  World world;
  Party source(world.add_device());
  Party target(world.add_device(), with_headers());
  const Address group = Address::parse("239.1.2.3", 5000);
  target.qp.join(group);
  source.fill(pattern(5000, 1));
  for (const size_t size : {size_t{100}, size_t{5000}}) {
    std::ranges::fill(target.memory, std::byte{0});
    REQUIRE_FALSE(target.post_recv(1, 0, kSlot));
    REQUIRE_FALSE(target.post_recv(2, kSlot, kSlot));
    REQUIRE_FALSE(source.send(group, 0, size));
    world.settle();
    check_message(target, source, size == 100 ? 0 : kSlot, size, "239.1.2.3");
    REQUIRE_FALSE(source.send(target.address(), 0, 10));
    world.settle();
    CHECK(drain(target.recv_cq).size() == 1);
  }
}

TEST_CASE("route headers are for receives alone: Write-Records and Reads find their place") {
  World world;
  Party source(world.add_device());
  Party target(world.add_device(), with_headers());
  std::vector<std::byte> memory(100);
  const MemoryRegion region(target.pd, memory, Access::local_write | Access::remote_write);
  source.fill(pattern(50, 1));
  REQUIRE_FALSE(source.qp.post_write_record({.sges = {source.mr.sge(0, 50)},
                                             .destination = target.address(),
                                             .remote = {region.rkey(), region.base()}}));
  world.settle();
  const auto came = drain(target.recv_cq);
  REQUIRE(came.size() == 1);
  CHECK(came[0].byte_count == 50);
  CHECK(same(std::span(memory).first(50), source.bytes(0, 50)));
}

TEST_CASE("route headers of queue pairs that share receives are those of the ones that want them") {
  World world;
  Party source(world.add_device());
  Device& device = world.add_device();
  ProtectionDomain pd(device);
  CompletionQueue cq(device, 16);
  SharedReceiveQueue srq(pd, {});
  const auto make = [&](bool headers) {
    return QueuePair(pd, {.type = QpType::ud,
                          .send_cq = cq,
                          .recv_cq = cq,
                          .datagram = {.route_header = headers},
                          .srq = srq});
  };
  QueuePair plain = make(false), headed = make(true);
  std::vector<std::byte> memory(400);
  const MemoryRegion mr(pd, memory);
  source.fill(pattern(50, 1));
  for (size_t i = 0; i < 4; ++i)
    REQUIRE_FALSE(srq.post_recv({.wr_id = i, .sges = {mr.sge(i * 100, 100)}}));
  for (QueuePair* qp : {&plain, &headed, &plain, &headed}) {
    REQUIRE_FALSE(source.send(qp->address(), 0, 50));
    world.settle();
  }
  const auto came = drain(cq);
  REQUIRE(came.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    const size_t header = i % 2 == 0 ? 0 : kHeader;
    CHECK(came[i].byte_count == header + 50);
    CHECK(same(std::span(memory).subspan(i * 100 + header, 50), source.bytes(0, 50)));
  }
}

TEST_CASE("route headers end with a receive whose memory may not be written") {
  World world;
  Party source(world.add_device());
  Party target(world.add_device(), with_headers());
  std::vector<std::byte> memory(100);
  const MemoryRegion closed(target.pd, memory, Access::none);
  REQUIRE_FALSE(
      target.qp.post_recv({.wr_id = 1, .sges = {closed.sge(0, 40), target.mr.sge(0, 100)}}));
  REQUIRE_FALSE(source.send(target.address(), 0, 50));
  world.settle();
  const auto came = drain(target.recv_cq);
  REQUIRE(came.size() == 1);
  CHECK(came[0].status == WcStatus::local_protection_error);
  CHECK(same(memory, std::vector<std::byte>(100)));
}
