// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Sends messages of these lengths, all from the beginning of a's memory, into receives one after
/// the other; true if all arrive once, in order and right.
void transfer(RdScene& scene, const std::vector<size_t>& lengths) {
  const size_t longest = *std::max_element(lengths.begin(), lengths.end());
  const auto contents = pattern(longest, 5);
  scene.a.fill(contents);
  size_t posted = 0;
  size_t received = 0;
  size_t sent = 0;
  const auto post_more = [&] {
    for (; posted < lengths.size() && posted - sent < 64; ++posted)
      if (scene.a.send(scene.b.address(), 0, lengths[posted], posted)) break;
  };
  REQUIRE_FALSE(scene.b.post_recv(0, 0, longest));
  const bool done = scene.run([&] {
    post_more();
    for (const WorkCompletion& one : drain(scene.b.recv_cq)) {
      REQUIRE(one.status == WcStatus::success);
      REQUIRE(one.wr_id == received);
      REQUIRE(one.byte_count == lengths[received]);
      REQUIRE(same(scene.b.bytes(0, one.byte_count), std::span(contents).first(lengths[received])));
      ++received;
      std::fill(scene.b.memory.begin(), scene.b.memory.end(), std::byte{0});
      REQUIRE_FALSE(scene.b.post_recv(received, 0, longest));
    }
    for (const WorkCompletion& one : drain(scene.a.send_cq)) {
      REQUIRE(one.status == WcStatus::success);
      REQUIRE(one.wr_id == sent);
      REQUIRE(received >= sent);  // never before it was delivered
      ++sent;
    }
    return received == lengths.size() && sent == lengths.size();
  });
  CHECK(done);
  INFO("received " << received << " sent " << sent);
  CHECK(received == lengths.size());
}

}  // namespace

TEST_CASE("rd: a message arrives, and completes at its source when it did") {
  RdScene scene;
  scene.a.fill(pattern(100, 1));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 100, 7));
  CHECK(scene.collect(scene.a.send_cq, 1, 2s).empty());  // no receive: not delivered
  scene.b.post_receives(1, 100);
  const auto received = scene.collect(scene.b.recv_cq, 1, 5s);
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::success);
  CHECK(received[0].byte_count == 100);
  CHECK(received[0].source == scene.a.address());
  CHECK(same(scene.b.bytes(0, 100), pattern(100, 1)));
  const auto sent = scene.collect(scene.a.send_cq, 1, 5s);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].wr_id == 7);
  CHECK(sent[0].status == WcStatus::success);
}

TEST_CASE("rd: a queue pair that is destroyed acknowledges what it has delivered") {
  RdScene scene;
  std::optional<Party> target(std::in_place, *scene.b_device, rd_options());
  target->post_receives(2, 100);
  REQUIRE_FALSE(scene.a.send(target->address(), 0, 100, 6));
  REQUIRE(scene.collect(scene.a.send_cq, 1, 5s).size() == 1);
  REQUIRE(drain(target->recv_cq).size() == 1);
  REQUIRE_FALSE(scene.a.send(target->address(), 0, 100, 7));
  // One step delivers it; the acknowledgement would leave with the next one.
  WorkCompletion received;
  REQUIRE(target->recv_cq.poll({&received, 1}) == 1);
  target.reset();
  const auto sent = scene.collect(scene.a.send_cq, 1);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == WcStatus::success);
}

TEST_CASE("rd: messages of all lengths arrive, the empty one too") {
  RdScene scene({}, {.memory = 2 << 20});
  transfer(scene, {0, 1, 8, 1000, 1400, 1414, 1415, 1418, 1500, 2828, 10000, 0, 65536, 1 << 20, 3});
}

TEST_CASE("rd: exactly once and in order under loss, reordering and duplication") {
  std::vector<size_t> lengths;
  Random random(3);
  for (int i = 0; i < 300; ++i)
    lengths.push_back(random.below(4) == 0 ? random.below(20000) : random.below(200));
  for (const double drop : {0.001, 0.01, 0.05, 0.2, 0.5})
    for (const double disorder : {0.0, 0.2}) {
      INFO("drop " << drop << " disorder " << disorder);
      RdScene scene({.seed = static_cast<uint64_t>(drop * 1000) + 3,
                     .drop = drop,
                     .reorder = disorder,
                     .duplicate = disorder},
                    {.reliable = {.peer_timeout = 60s}});
      transfer(scene, lengths);
      if (drop > 0.005) CHECK(scene.dropped > 0);
    }
}

TEST_CASE("rd: corrupt and truncated datagrams are as good as lost") {
  RdScene scene({.seed = 12, .corrupt = 0.1, .truncate = 0.1});
  transfer(scene, std::vector<size_t>(200, 3000));
  CHECK(scene.b_device->counter("drop_crc") > 10);
}

TEST_CASE("rd: jumbo and small segments work as well") {
  for (const uint32_t segment : {128U, 9000U, 65507U}) {
    INFO("segment " << segment);
    RdScene scene({.seed = 2, .drop = 0.05}, {.datagram = {.segment = segment, .jumbo = true}},
                  {.max_datagram = 65507, .queue_datagrams = 16384});
    transfer(scene, {0, 50, 100, 1000, 60000, 20000, 1});
  }
}

TEST_CASE("rd: both directions at once, data taking acknowledgements along") {
  RdScene scene;
  scene.a.post_receives(100, 64);
  scene.b.post_receives(100, 64);
  int rounds = 0;
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64));
  scene.run([&] {
    for (size_t n = drain(scene.b.recv_cq).size(); n != 0; --n)
      REQUIRE_FALSE(scene.b.send(scene.a.address(), 0, 64));
    for (size_t n = drain(scene.a.recv_cq).size(); n != 0; --n)
      if (++rounds < 100) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64));
    drain(scene.a.send_cq);
    drain(scene.b.send_cq);
    return rounds == 100;
  });
  CHECK(rounds == 100);
}

TEST_CASE("rd: an acknowledgement is for two datagrams at least in a stream of them") {
  RdScene scene({}, {.memory = 4 << 20});
  transfer(scene, {4 << 20, 4 << 20});
  const uint64_t data = (8 << 20) / 1400;
  CHECK(scene.b_device->counter("rd_acknowledgements") < data / 2);
  CHECK(scene.a_device->counter("rd_retransmitted") == 0);
}

TEST_CASE("rd: immediate data, the solicited flag and the Q_Key travel") {
  RdScene scene({}, {.datagram = {.q_key = 77}});
  scene.b.post_receives(2, 3000);
  const Sge sge = scene.a.mr.sge(0, 3000);
  REQUIRE_FALSE(scene.a.qp.post_send({.wr_id = 1,
                                      .sges = {&sge, 1},
                                      .flags = SendFlags::signaled | SendFlags::solicited,
                                      .destination = scene.b.address(),
                                      .q_key = 77,
                                      .immediate = 0x1122334455667788}));
  const auto received = scene.collect(scene.b.recv_cq, 1, 5s);
  REQUIRE(received.size() == 1);
  CHECK(received[0].has_immediate);
  CHECK(received[0].immediate == 0x1122334455667788);
  CHECK(received[0].solicited);
  SECTION("another Q_Key is refused, and the sender is told") {
    REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 3000, 2));
    const auto sent = scene.collect(scene.a.send_cq, 2, 5s);
    REQUIRE(sent.size() == 2);
    CHECK(sent[1].status == WcStatus::remote_operation_error);
    CHECK(scene.b_device->counter("drop_q_key") == 1);
  }
}

TEST_CASE("rd: inline data may be reused at once") {
  RdScene scene({.seed = 3, .drop = 0.3});
  scene.b.post_receives(20, 8);
  for (uint8_t i = 0; i < 20; ++i) {
    std::array<std::byte, 8> data;
    data.fill(std::byte{i});
    const Sge sge{data.data(), 8, 0};
    REQUIRE_FALSE(scene.a.qp.post_send({.sges = {&sge, 1},
                                        .flags = SendFlags::signaled | SendFlags::inline_data,
                                        .destination = scene.b.address()}));
    data.fill(std::byte{0xFF});
  }
  REQUIRE(scene.collect(scene.b.recv_cq, 20).size() == 20);
  for (uint8_t i = 0; i < 20; ++i) CHECK(scene.b.memory[i * size_t{8}] == std::byte{i});
}

TEST_CASE("rd: no group, and no peer without a port, is a destination") {
  RdScene scene;
  CHECK(scene.a.send(Address::parse("224.1.1.1:5"), 0, 8) == Errc::invalid_destination);
  CHECK(scene.a.send(Address::parse("255.255.255.255:5"), 0, 8) == Errc::invalid_destination);
  CHECK(scene.a.send(Address::parse("10.0.0.2"), 0, 8) == Errc::invalid_destination);
}
