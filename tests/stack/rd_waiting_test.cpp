// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "llp/forwarding.h"
#include "stack/rd_scene.h"

/// RD messages that wait at their target, for a receive or for a share of the receives.

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Loses long datagrams, but for the first `passing` ones.
class LosesLongOnes final : public llp::ForwardingDatagramLink {
 public:
  LosesLongOnes(World::Link inner, size_t& passing)
      : ForwardingDatagramLink(std::move(inner)), passing_(passing) {}

  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    for (const llp::OutgoingDatagram& datagram : burst) {
      if (datagram.size() > 500 && passing_ == 0) continue;
      if (datagram.size() > 500) --passing_;
      inner().send({&datagram, 1});
    }
    return {burst.size()};
  }

 private:
  size_t& passing_;
};

}  // namespace

TEST_CASE("rd: of several peers that wait for a receive each gets the next one that is posted") {
  RdScene scene;
  Party third(scene.world.add_device(), rd_options());
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  REQUIRE_FALSE(third.send(scene.b.address(), 0, 64, 2));
  scene.run([] { return false; }, 5ms);
  CHECK(drain(scene.b.recv_cq).empty());
  for (uint64_t id = 0; id < 2; ++id) {
    REQUIRE_FALSE(scene.b.post_recv(id, 0, 64));
    scene.world.settle();  // no time passes: no probe brings it
    CHECK(drain(scene.b.recv_cq).size() == 1);
  }
}

TEST_CASE("rd: a message that waits for a receive outlives the idle timeout of its target") {
  const Duration keep_alive = GENERATE(1s, 3s);
  RdScene scene({}, {.reliable = {.keep_alive = keep_alive, .idle_timeout = 1s}});
  scene.b.post_receives(1, 64);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  REQUIRE(scene.collect(scene.a.send_cq, 1, 5s).size() == 1);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 2));
  CHECK(scene.collect(scene.a.send_cq, 1, 30s).empty());
  scene.b.post_receives(1, 64);
  const auto done = scene.collect(scene.a.send_cq, 1, 5s);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::success);
}

TEST_CASE("rd: a peer that vanishes while its message waits for a receive is forgotten") {
  RdScene scene({}, {.reliable = {.peer_timeout = 2s, .idle_timeout = 1s}});
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, 1));
  scene.run([] { return false; }, 5ms);
  REQUIRE(scene.b.qp.peers().size() == 1);
  scene.a.qp.modify(QpState::error);
  scene.run([] { return false; }, 20s, 10ms);
  CHECK(scene.b.qp.peers().empty());
}

TEST_CASE("rd: a Send that waited for a receive of which the memory has gone does not succeed") {
  const size_t length = GENERATE(size_t{64}, size_t{4000});
  RdScene scene({}, {.reliable = {.peer_timeout = 2s}});
  auto gone = std::make_unique<MemoryRegion>(scene.b.pd, std::span(scene.b.memory));
  const Sge sge = gone->sge(0, 4000);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, length, 1));
  scene.run([] { return false; }, 5ms);
  gone.reset();
  REQUIRE_FALSE(scene.b.qp.post_recv({.wr_id = 7, .sges = {&sge, 1}}));
  const auto received = scene.collect(scene.b.recv_cq, 1, 5s);
  REQUIRE(received.size() == 1);
  CHECK(received[0].status == WcStatus::local_protection_error);
  CHECK(scene.b.qp.state() == QpState::error);
  const auto sent = scene.collect(scene.a.send_cq, 1, 20s);
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == WcStatus::retry_exceeded);
}

TEST_CASE("rd: a Send that makes no progress fails at both ends, and its receive is used next") {
  const bool by_default = GENERATE(true, false);  // message_timeout is then the peer_timeout
  World world;
  size_t passing = 1;
  Device& source_device = world.add_device([&passing](World::Link link) -> World::Link {
    return std::make_unique<LosesLongOnes>(std::move(link), passing);
  });
  Device& target_device = world.add_device();
  PartyOptions patient{.memory = 1 << 16};
  patient.datagram.jumbo = true;  // it does not try whether shorter datagrams get through
  Party source(source_device, rd_options(patient));
  const ReliableOptions options =
      by_default ? ReliableOptions{.peer_timeout = 2s} : ReliableOptions{.message_timeout = 2s};
  Party target(target_device, rd_options({.memory = 1 << 16, .reliable = options}));
  const auto pass = [&world](Duration time) {
    world.settle();
    for (Duration passed{}; passed < time; passed += 10ms) world.advance(10ms);
  };
  for (uint64_t id = 1; id <= 2; ++id) REQUIRE_FALSE(target.post_recv(id, id * 4096, 4096));
  REQUIRE_FALSE(source.send(target.address(), 0, 4000, 1));
  pass(1900ms);
  CHECK(target_device.counter("message_timeouts") == 0);
  pass(200ms);
  CHECK(target_device.counter("message_timeouts") == 1);
  CHECK(drain(source.send_cq).empty());
  passing = SIZE_MAX;
  pass(2s);
  const auto failed = drain(source.send_cq);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].status == WcStatus::remote_operation_error);
  REQUIRE_FALSE(source.send(target.address(), 0, 64, 2));
  pass(100ms);
  const auto received = drain(target.recv_cq);
  REQUIRE(received.size() == 1);
  CHECK(received[0].wr_id == 1);
  CHECK(drain(source.send_cq).at(0).status == WcStatus::success);
}
