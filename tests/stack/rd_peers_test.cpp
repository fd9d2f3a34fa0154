// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

void restart(QueuePair& qp) {
  qp.modify(QpState::error);
  qp.modify(QpState::reset);
  qp.modify(QpState::init);
  qp.modify(QpState::rts);
}

struct Exchange : RdScene {
  using RdScene::RdScene;
  /// One message arrives and is known to have.
  void exchange(uint64_t wr_id = 0) {
    REQUIRE_FALSE(b.post_recv(wr_id, 0, 64));
    REQUIRE_FALSE(a.send(b.address(), 0, 64, wr_id));
    REQUIRE(collect(b.recv_cq, 1, 5s).size() == 1);
    const auto sent = collect(a.send_cq, 1, 5s);
    REQUIRE(sent.size() == 1);
    REQUIRE(sent[0].status == WcStatus::success);
  }
};

}  // namespace

TEST_CASE("rd: work under way fails when the peer restarts, and later work reaches the new one") {
  Exchange scene;
  scene.exchange();
  for (uint64_t i = 0; i < 5; ++i) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, i));
  scene.world.settle();
  restart(scene.b.qp);
  const auto failed = scene.collect(scene.a.send_cq, 5, 5s);
  REQUIRE(failed.size() == 5);
  for (const WorkCompletion& one : failed) CHECK(one.status == WcStatus::peer_restarted);
  drain(scene.b.recv_cq);
  scene.exchange(9);
  CHECK(scene.collect(scene.b.recv_cq, 1, 2s).empty());
}

TEST_CASE("rd: a peer that restarts and speaks first is a new peer as well") {
  Exchange scene;
  scene.exchange();
  scene.a.post_receives(1, 64);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  scene.world.settle();
  restart(scene.b.qp);
  REQUIRE_FALSE(scene.b.send(scene.a.address(), 0, 64, 2));
  const auto failed = scene.collect(scene.a.send_cq, 1, 5s);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].status == WcStatus::peer_restarted);
  CHECK(scene.collect(scene.a.recv_cq, 1, 5s).size() == 1);
}

TEST_CASE("rd: a local invalidate is done when the requests before it end without a datagram") {
  Exchange scene;
  MemoryRegion region(scene.a.pd, std::span(scene.a.memory),
                      kAllAccess | Access::remote_invalidate);
  scene.exchange();
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  scene.world.settle();
  REQUIRE_FALSE(scene.a.qp.post_send({.wr_id = 2,
                                      .flags = SendFlags::signaled,
                                      .opcode = WrOpcode::local_invalidate,
                                      .invalidate_stag = region.rkey()}));
  SECTION("for their peer restarts") { restart(scene.b.qp); }
  SECTION("for their peer is silent") { scene.b.qp.modify(QpState::error); }
  const auto done = scene.collect(scene.a.send_cq, 2, 60s);
  REQUIRE(done.size() == 2);
  CHECK(done[0].status != WcStatus::success);
  CHECK(done[1].wr_id == 2);
  CHECK(done[1].status == WcStatus::success);
}

TEST_CASE("rd: half a message of a peer that restarts gives its receive back") {
  Exchange scene({}, {.reliable = {.receive_window = 4}});
  scene.b.post_receives(1, 60000);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 60000, 1));
  while (scene.b_device->counter("rx_datagrams") < 8) {
    scene.a_device->progress();
    scene.b_device->progress();
  }
  REQUIRE(drain(scene.b.recv_cq).empty());
  restart(scene.a.qp);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 100, 2));
  const auto received = scene.collect(scene.b.recv_cq, 1, 5s);
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 0);
  CHECK(received[0].byte_count == 100);
}

TEST_CASE("rd: a silent peer is given up, and no other suffers") {
  Exchange scene;
  scene.exchange();
  Device& third_device = scene.world.add_device();
  Party third(third_device, rd_options());
  third.post_receives(100, 64);
  const Address nobody = Address::parse("10.0.0.77:9");
  REQUIRE_FALSE(scene.a.send(nobody, 0, 64, 1));
  scene.b.qp.modify(QpState::error);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 2));
  for (uint64_t i = 0; i < 20; ++i) REQUIRE_FALSE(scene.a.send(third.address(), 0, 64, 100 + i));
  CHECK(scene.collect(third.recv_cq, 20, 2s).size() == 20);
  // Completions come in the order of posting, after those that fail.
  CHECK(scene.collect(scene.a.send_cq, 1, 7s).empty());
  const auto done = scene.collect(scene.a.send_cq, 22, 3s);
  REQUIRE(done.size() == 22);
  CHECK(done[0].status == WcStatus::retry_exceeded);
  CHECK(done[1].status == WcStatus::retry_exceeded);
  for (size_t i = 2; i < done.size(); ++i) CHECK(done[i].status == WcStatus::success);
  CHECK(scene.a_device->counter("rd_silent") == 2);
}

TEST_CASE("rd: a Read of which the response never comes is given up as well") {
  Exchange scene;
  MemoryRegion target(scene.b.pd, std::span(scene.b.memory), kAllAccess);
  scene.exchange();
  scene.b.qp.modify(QpState::error);
  REQUIRE_FALSE(scene.a.qp.post_read({.wr_id = 3,
                                      .sges = {scene.a.mr.sge(0, 100)},
                                      .destination = scene.b.address(),
                                      .remote = {target.rkey(), target.base()}}));
  const auto done = scene.collect(scene.a.send_cq, 1, 11s);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::retry_exceeded);
}

TEST_CASE("rd: a peer that holds messages for want of receives is not silent") {
  Exchange scene({}, {.reliable = {.peer_timeout = 3s}});
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  CHECK(scene.collect(scene.a.send_cq, 1, 60s).empty());
  scene.b.post_receives(1, 64);
  CHECK(scene.collect(scene.a.send_cq, 1, 5s).size() == 1);
}

TEST_CASE("rd: peers with which nothing is exchanged are forgotten, and come back unnoticed") {
  Exchange scene({}, {.reliable = {.idle_timeout = 5s}});
  scene.exchange(1);
  CHECK(scene.a.qp.peers().size() == 1);
  CHECK(scene.b.qp.peers().size() == 1);
  scene.run([] { return false; }, 6s, 10ms);
  CHECK(scene.a.qp.peers().empty());
  CHECK(scene.b.qp.peers().empty());
  scene.exchange(2);
}

TEST_CASE(
    "rd: a peer is not forgotten or given up while requests wait until the rate lets them be "
    "sent") {
  // Longer than the idle_timeout, or than the peer_timeout.
  const bool longer = GENERATE(false, true);
  const uint64_t bytes_per_second = longer ? 50 : 500;
  Exchange scene({}, {.reliable = {.idle_timeout = longer ? 60s : 1s}});
  scene.exchange();
  scene.b.post_receives(3, 1000);
  scene.a.qp.set_max_rate(bytes_per_second);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 1000, i));
  const auto sent = scene.collect(scene.a.send_cq, 3, 60s);
  REQUIRE(sent.size() == 3);
  for (const WorkCompletion& one : sent) CHECK(one.status == WcStatus::success);
}

TEST_CASE("rd: a peer that only one side forgot is found again, with nothing lost or doubled") {
  RdScene scene;
  Party sleepy(*scene.b_device, rd_options({.reliable = {.idle_timeout = 1s}}));
  sleepy.post_receives(10, 64);
  for (uint64_t i = 0; i < 5; ++i) {
    REQUIRE_FALSE(scene.a.send(sleepy.address(), 0, 64, i));
    const auto sent = scene.collect(scene.a.send_cq, 1, 5s);
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == WcStatus::success);
    scene.run([] { return false; }, 2s, 10ms);
    CHECK(sleepy.qp.peers().empty());
    CHECK(scene.a.qp.peers().size() == 1);
  }
  CHECK(scene.collect(sleepy.recv_cq, 5, 1s).size() == 5);
  CHECK(drain(sleepy.recv_cq).empty());
}

TEST_CASE("rd: an idle peer costs no traffic") {
  Exchange scene;
  scene.exchange();
  scene.run([] { return false; }, 1s, 10ms);
  const uint64_t before =
      scene.a_device->counter("tx_datagrams") + scene.b_device->counter("tx_datagrams");
  scene.run([] { return false; }, 50s, 100ms);
  CHECK(scene.a_device->counter("tx_datagrams") + scene.b_device->counter("tx_datagrams") ==
        before);
}

TEST_CASE("rd: both sides may speak first at the same time") {
  Exchange scene({.seed = 3, .drop = 0.2});
  scene.a.post_receives(1, 64);
  scene.b.post_receives(1, 64);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  REQUIRE_FALSE(scene.b.send(scene.a.address(), 0, 64, 2));
  CHECK(scene.collect(scene.a.recv_cq, 1, 30s).size() == 1);
  CHECK(scene.collect(scene.b.recv_cq, 1, 30s).size() == 1);
  CHECK(scene.collect(scene.a.send_cq, 1, 30s)[0].status == WcStatus::success);
  CHECK(scene.collect(scene.b.send_cq, 1, 30s)[0].status == WcStatus::success);
}

TEST_CASE("rd: a queue pair sends to itself") {
  RdScene scene;
  scene.a.post_receives(3, 3000);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(scene.a.send(scene.a.address(), 10000, 3000, i));
  CHECK(scene.collect(scene.a.recv_cq, 3, 5s).size() == 3);
  CHECK(scene.collect(scene.a.send_cq, 3, 5s).size() == 3);
}

TEST_CASE("rd: no more peers than allowed, and those that are there go on") {
  RdScene scene({}, {.reliable = {.max_peers = 1}});
  Device& third_device = scene.world.add_device();
  Party third(third_device, rd_options({.reliable = {.peer_timeout = 2s}}));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));  // waits for a receive
  scene.run([] { return false; }, 1s);
  REQUIRE_FALSE(third.send(scene.b.address(), 0, 64, 2));
  const auto refused = scene.collect(third.send_cq, 1, 5s);
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].status == WcStatus::retry_exceeded);
  REQUIRE_FALSE(scene.a.send(third.address(), 0, 64, 3));
  scene.b.post_receives(10, 64);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 4));
  const auto done = scene.collect(scene.a.send_cq, 3, 5s);
  REQUIRE(done.size() == 3);
  CHECK(done[0].status == WcStatus::success);
  CHECK(done[1].status == WcStatus::retry_exceeded);
  CHECK(done[2].status == WcStatus::success);
}

TEST_CASE("rd: a peer that is not in use gives way to another in a full table") {
  RdScene scene({}, {.reliable = {.max_peers = 1}});
  Device& third_device = scene.world.add_device();
  Party third(third_device, rd_options({}));
  scene.b.post_receives(3, 64);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  REQUIRE(scene.collect(scene.a.send_cq, 1, 5s).size() == 1);
  REQUIRE_FALSE(third.send(scene.b.address(), 0, 64, 2));
  const auto done = scene.collect(third.send_cq, 1, 5s);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::success);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 3));  // it was forgotten, and comes back
  const auto again = scene.collect(scene.a.send_cq, 1, 5s);
  REQUIRE(again.size() == 1);
  CHECK(again[0].status == WcStatus::success);
}

TEST_CASE("rd: the state of peers can be asked for") {
  Exchange scene;
  scene.exchange();
  const auto peers = scene.a.qp.peers();
  REQUIRE(peers.size() == 1);
  CHECK(peers[0].address == scene.b.address());
  CHECK(peers[0].incarnation != 0);
  CHECK(peers[0].round_trip > Duration::zero());
  CHECK(peers[0].congestion_window >= 10);
  CHECK(peers[0].in_flight == 0);
}

TEST_CASE("rd: options out of their range are refused") {
  World world;
  Device& device = world.add_device();
  const auto refuses = [&](const ReliableOptions& reliable) {
    return refusal([&] { Party party(device, rd_options({.reliable = reliable})); }) ==
           Errc::invalid_argument;
  };
  CHECK(refuses({.peer_timeout = 0s}));
  CHECK(refuses({.keep_alive = 0s}));
  CHECK(refuses({.idle_timeout = 999ms}));
  CHECK(refuses({.max_peers = 0}));
  CHECK(refuses({.receive_window = 0}));
  CHECK(refuses({.receive_window = 32769}));
  CHECK_FALSE(refuses({}));
}
