// SPDX-License-Identifier: Apache-2.0
// With this envelope the library has the in-memory network carry what no other one understands.
#include <algorithm>
#include <array>
#include <type_traits>
#include <vector>

#include "dgram/envelope.h"
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;
using dgram::SealedEnvelope;

static_assert(std::is_same_v<dgram::Envelope, SealedEnvelope>);

namespace {

constexpr size_t kSendHeader = 18;
constexpr size_t kPayload = 1472 - SealedEnvelope::kOverhead - kSendHeader;  // of a datagram

/// Two UD queue pairs, and all datagrams that the first one sends.
struct UdScene {
  explicit UdScene(const PartyOptions& options = {}) : a(one, options), b(two, options) {}

  World::Link watch(World::Link link) {
    return std::make_unique<llp::ImpairedDatagramLink>(
        std::move(link), llp::Impairment{}, world.clock, [this](ConstBytes datagram, llp::Verdict) {
          seen.emplace_back(datagram.begin(), datagram.end());
        });
  }

  World world;
  std::vector<std::vector<std::byte>> seen;
  Device& one = world.add_device([this](World::Link link) { return watch(std::move(link)); });
  Device& two = world.add_device();
  Party a;
  Party b;
};

std::vector<std::byte> sealed(SealedEnvelope::Sealer& sealer, ConstBytes body, ConstBytes payload) {
  std::vector<std::byte> datagram(SealedEnvelope::kPrefixBytes);
  datagram.insert(datagram.end(), body.begin(), body.end());
  std::array<std::byte, SealedEnvelope::kTrailerBytes> trailer;
  std::array<ConstBytes, 1> rest{payload};
  const size_t bytes = sealer.seal({.incarnation = 7}, datagram, rest, trailer);
  datagram.insert(datagram.end(), rest[0].begin(), rest[0].end());
  datagram.insert(datagram.end(), trailer.begin(), trailer.end());
  CHECK(datagram.size() == bytes);
  return datagram;
}

}  // namespace

TEST_CASE("another envelope masks what is sent in bytes of its own, and opens it in place") {
  SealedEnvelope::Sealer sealer(1000);
  const std::vector<std::byte> payload = pattern(300, 1);
  const std::vector<std::byte> body = pattern(20, 2);
  std::vector<std::byte> datagram = sealed(sealer, body, payload);
  CHECK(payload == pattern(300, 1));
  CHECK(std::search(datagram.begin(), datagram.end(), payload.begin(), payload.end()) ==
        datagram.end());

  const dgram::OpenedEnvelope opened = SealedEnvelope::open(datagram);
  REQUIRE(opened.valid);
  CHECK(opened.labels.incarnation == 7);
  CHECK(opened.body.data() == datagram.data() + SealedEnvelope::kPrefixBytes);
  CHECK(same(opened.body.first(20), body));
  CHECK(same(opened.body.subspan(20), payload));
  CHECK(SealedEnvelope::open(datagram).drop_reason == Counter::drop_crc);
}

TEST_CASE("another envelope notices each bit that is altered") {
  SealedEnvelope::Sealer sealer(1000);
  const std::vector<std::byte> datagram = sealed(sealer, pattern(9, 2), pattern(30, 1));
  for (size_t bit = 0; bit < 8 * datagram.size(); ++bit) {
    std::vector<std::byte> altered = datagram;
    altered[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    CHECK_FALSE(SealedEnvelope::open(altered).valid);
  }
}

TEST_CASE("UD messages fill datagrams as another envelope leaves room, and arrive whole") {
  const size_t size = GENERATE(size_t{0}, size_t{1}, kPayload, kPayload + 1, size_t{20'000});
  UdScene scene;
  const std::vector<std::byte> message = pattern(size, 3);
  scene.a.fill(message);
  scene.b.post_receives(1, 20'000);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, size));
  scene.world.settle();
  const auto received = drain(scene.b.recv_cq);
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::success);
  CHECK(received[0].byte_count == size);
  CHECK(same(scene.b.bytes(0, size), message));
  CHECK(same(scene.a.bytes(0, size), message));
  REQUIRE(scene.seen.size() == std::max<size_t>(1, (size + kPayload - 1) / kPayload));
  CHECK(scene.seen[0].size() == std::min(size, kPayload) + SealedEnvelope::kOverhead + kSendHeader);
  CHECK(scene.a.qp.query().max_datagram_payload == kPayload);
}

TEST_CASE("a Write-Record with immediate data arrives in another envelope") {
  UdScene scene;
  scene.a.fill(pattern(5000, 4));
  const MemoryRegion target(scene.b.pd, std::span(scene.b.memory), kAllAccess);
  const Sge sge = scene.a.mr.sge(0, 5000);
  SendWorkRequest request{.wr_id = 1, .sges = {&sge, 1}, .destination = scene.b.address()};
  request.opcode = WrOpcode::write_record;
  request.remote = {target.rkey(), target.base() + 100};
  request.immediate = 0x1122334455667788;
  REQUIRE_FALSE(scene.a.qp.post_send(request));
  scene.world.settle();
  const auto received = drain(scene.b.recv_cq);
  REQUIRE(received.size() == 1);
  CHECK(received[0].valid_bytes == 5000);
  CHECK(received[0].immediate == 0x1122334455667788);
  CHECK(same(scene.b.bytes(100, 5000), pattern(5000, 4)));
}

TEST_CASE("a UD Read, after a Challenge and its Echo, is answered in another envelope") {
  UdScene scene;
  scene.b.fill(pattern(20'000, 7));
  const MemoryRegion source(scene.b.pd, std::span(scene.b.memory), kAllAccess);
  const Sge sge = scene.a.mr.sge(0, 20'000);
  SendWorkRequest request{.wr_id = 1, .sges = {&sge, 1}, .destination = scene.b.address()};
  request.opcode = WrOpcode::rdma_read;
  request.remote = {source.rkey(), source.base()};
  REQUIRE_FALSE(scene.a.qp.post_send(request));
  scene.world.settle();
  const auto done = drain(scene.a.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::success);
  CHECK(same(scene.a.bytes(0, 20'000), pattern(20'000, 7)));
  CHECK(scene.two.counter("challenges_sent") == 1);
}

TEST_CASE("each member of a group opens a datagram of its own in another envelope") {
  UdScene scene;
  const Address group = Address::parse("239.1.2.3");
  // A group's members have its port.
  const PartyOptions at_port{.datagram = {.port = 7000}};
  Party first(scene.two, at_port);
  Party second(scene.world.add_device(), at_port);
  for (Party* member : {&first, &second}) {
    member->qp.join(group);
    member->post_receives(1, 4000);
  }
  scene.a.fill(pattern(4000, 5));
  REQUIRE_FALSE(scene.a.send(group.with_port(7000), 0, 4000));
  scene.world.settle();
  for (Party* member : {&first, &second}) {
    CHECK(drain(member->recv_cq).size() == 1);
    CHECK(same(member->bytes(0, 4000), pattern(4000, 5)));
  }
}

TEST_CASE("RD messages arrive in another envelope whatever is lost, damaged, doubled and late") {
  RdScene scene(
      {.seed = 5, .drop = 0.1, .reorder = 0.1, .duplicate = 0.1, .corrupt = 0.1, .truncate = 0.05},
      {.memory = 1 << 20});
  scene.a.fill(pattern(1 << 20, 6));
  scene.b.post_receives(50, 20'000);
  for (size_t i = 0; i < 50; ++i)
    REQUIRE_FALSE(scene.a.send(scene.b.address(), 20'000 * i, 400 * i, i));
  const auto received = scene.collect(scene.b.recv_cq, 50);
  REQUIRE(received.size() == 50);
  for (size_t i = 0; i < 50; ++i) {
    CHECK(received[i].byte_count == 400 * i);
    CHECK(same(scene.b.bytes(20'000 * i, 400 * i), scene.a.bytes(20'000 * i, 400 * i)));
  }
  CHECK(scene.b_device->counter("drop_crc") > 0);
}
