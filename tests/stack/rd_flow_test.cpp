// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("rd: with no receive posted nothing is dropped, and all resumes when one is") {
  RdScene scene({}, {.reliable = {.receive_window = 16}});
  for (uint64_t i = 0; i < 100; ++i) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, i));
  CHECK(scene.collect(scene.a.send_cq, 1, 30s).empty());
  // No more than the window went out, and nothing twice.
  CHECK(scene.a_device->counter("rd_retransmitted") == 0);
  CHECK(scene.b_device->counter("drop_no_receive") == 0);
  CHECK(scene.b_device->counter("rd_held") == 1);
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE_FALSE(scene.b.post_recv(i, 0, 64));
    const auto received = scene.collect(scene.b.recv_cq, 1, 1s);
    REQUIRE(received.size() == 1);
    REQUIRE(received[0].wr_id == i);
  }
  CHECK(scene.collect(scene.a.send_cq, 100, 5s).size() == 100);
  CHECK(scene.a_device->counter("rd_retransmitted") == 0);
}

TEST_CASE("rd: a message of several segments waits for its receive whole") {
  RdScene scene({.seed = 4, .drop = 0.1}, {.reliable = {.receive_window = 8}});
  scene.a.fill(pattern(60000, 9));
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 60000));
  CHECK(scene.collect(scene.a.send_cq, 1, 9s).empty());
  REQUIRE_FALSE(scene.b.post_recv(1, 0, 60000));
  REQUIRE(scene.collect(scene.b.recv_cq, 1).size() == 1);
  CHECK(same(scene.b.bytes(0, 60000), pattern(60000, 9)));
  CHECK(scene.collect(scene.a.send_cq, 1)[0].status == WcStatus::success);
}

TEST_CASE("rd: a full completion queue holds senders up and loses nothing") {
  RdScene scene({.seed = 8, .drop = 0.02}, {.receive_entries = 4});
  scene.b.post_receives(128, 64);
  std::vector<uint64_t> received;
  uint64_t posted = 0;
  for (; posted < 100; ++posted) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, posted));
  scene.run([] { return false; }, 5s, 10ms);
  std::array<WorkCompletion, 1> one;
  scene.run([&] {
    if (scene.b.recv_cq.poll(one) == 1) received.push_back(one[0].wr_id);
    return received.size() == 100;
  });
  REQUIRE(received.size() == 100);
  for (uint64_t i = 0; i < 100; ++i) CHECK(received[i] == i);
}

TEST_CASE("rd: a full completion queue holds Write-Records up as well") {
  RdScene scene({}, {.receive_entries = 2, .datagram = {.max_open_records = 4}});
  MemoryRegion target(scene.b.pd, std::span(scene.b.memory), kAllAccess);
  for (uint64_t i = 0; i < 40; ++i)
    REQUIRE_FALSE(scene.a.qp.post_write_record({.wr_id = i,
                                                .sges = {scene.a.mr.sge(0, 2000)},
                                                .destination = scene.b.address(),
                                                .remote = {target.rkey(), target.base() + i}}));
  scene.run([] { return false; }, 3s, 10ms);
  CHECK(scene.b_device->counter("drop_no_context") == 0);
  std::vector<uint64_t> offsets;
  std::array<WorkCompletion, 1> one;
  scene.run([&] {
    if (scene.b.recv_cq.poll(one) == 1) {
      REQUIRE(one[0].opcode == WcOpcode::recv_write_record);
      REQUIRE(one[0].validity.complete());
      offsets.push_back(one[0].tagged_offset - target.base());
    }
    return offsets.size() == 40;
  });
  REQUIRE(offsets.size() == 40);
  for (uint64_t i = 0; i < 40; ++i) CHECK(offsets[i] == i);
  CHECK(scene.collect(scene.a.send_cq, 40, 5s).size() == 40);
}

TEST_CASE("rd: the messages that wait for memory are bounded, and come in the end") {
  RdScene scene({},
                {.memory = 1 << 20, .reliable = {.receive_window = 256, .max_buffer = 64 << 10}});
  for (uint64_t i = 0; i < 4; ++i) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 200000, i));
  CHECK(scene.collect(scene.a.send_cq, 1, 3s).empty());
  scene.b.post_receives(4, 200000);
  CHECK(scene.collect(scene.b.recv_cq, 4).size() == 4);
  CHECK(scene.collect(scene.a.send_cq, 4).size() == 4);
}

TEST_CASE("rd: a Send waits for its receive even where the peer has no room to keep it") {
  RdScene scene({}, {.reliable = {.receive_window = 16, .max_buffer = 64 << 10}});
  Party late(*scene.a_device, rd_options({}));
  for (uint64_t i = 0; i < 17; ++i) REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 64, i));
  scene.run([] { return false; }, 1s);
  REQUIRE_FALSE(late.send(scene.b.address(), 0, 64, 99));
  scene.run([] { return false; }, 25s);
  CHECK(scene.b_device->counter("drop_no_context") > 0);
  CHECK(drain(late.send_cq).empty());
  CHECK(drain(scene.a.send_cq).empty());
  scene.b.post_receives(18, 64);
  const auto done = scene.collect(late.send_cq, 1, 5s);
  REQUIRE(done.size() == 1);
  CHECK(done[0].status == WcStatus::success);
  CHECK(scene.collect(scene.a.send_cq, 17, 5s).size() == 17);
}

TEST_CASE(
    "rd: a Read that waits after a Send without a receive has the peer asked each keep_alive") {
  RdScene scene;
  MemoryRegion region(scene.b.pd, std::span(scene.b.memory), kAllAccess);
  scene.b.post_receives(1, 100);
  REQUIRE_FALSE(scene.a.send(scene.b.address(), 0, 100, 1));
  REQUIRE(scene.collect(scene.a.send_cq, 1, 5s).size() == 1);
  REQUIRE_FALSE(scene.b.send(scene.a.address(), 0, 100, 2));
  scene.run([] { return false; }, 10ms);
  REQUIRE_FALSE(scene.a.qp.post_read({.wr_id = 3,
                                      .sges = {scene.a.mr.sge(0, 100)},
                                      .destination = scene.b.address(),
                                      .remote = {region.rkey(), region.base()}}));
  scene.run([] { return false; }, 3s);
  const auto sent = [&] {
    return scene.a_device->counter("tx_datagrams") + scene.b_device->counter("tx_datagrams");
  };
  const uint64_t before = sent();
  scene.run([] { return false; }, 10s);
  // A probe and its answer in either direction.
  CHECK(sent() - before <= 4 * 11);
  CHECK(sent() - before >= 4 * 9);
  CHECK(drain(scene.a.send_cq).empty());
  scene.a.post_receives(1, 100);
  CHECK(scene.collect(scene.a.recv_cq, 1, 5s).size() == 1);
  CHECK(scene.collect(scene.a.send_cq, 1, 5s).size() == 1);
}

TEST_CASE("rd: messages gathered from 64 pieces each go to many peers at once") {
  constexpr size_t kPeers = 16;  // their pieces do not fit into one burst
  RdScene scene({}, {.capacity = {.max_send_sge = 64}});
  std::deque<Party> targets;
  for (size_t i = 0; i < kPeers; ++i) {
    Party& target = targets.emplace_back(scene.world.add_device(), rd_options());
    target.post_receives(2, 64);
    REQUIRE_FALSE(scene.a.send(target.address(), 0, 1, i));  // opens the association
  }
  REQUIRE(scene.collect(scene.a.send_cq, kPeers, 5s).size() == kPeers);
  const auto contents = pattern(64, 1);
  scene.a.fill(contents);
  std::vector<Sge> sges;
  for (size_t i = 0; i < 64; ++i) sges.push_back(scene.a.mr.sge(i, 1));
  std::vector<SendWorkRequest> requests;
  for (const Party& target : targets)
    requests.push_back({.sges = sges, .destination = target.address()});
  size_t posted = 0;
  REQUIRE_FALSE(scene.a.qp.post_sends(requests, posted));
  CHECK(scene.collect(scene.a.send_cq, kPeers, 5s).size() == kPeers);
  for (Party& target : targets) {
    CHECK(drain(target.recv_cq).size() == 2);
    CHECK(same(target.bytes(64, 64), contents));
  }
}
