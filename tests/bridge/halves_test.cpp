// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <future>
#include <set>
#include <vector>

#include "bridge/datagrams.h"

/// Completions, events and receives of a device whose connections are hardware's and whose
/// datagrams are software's.
namespace diwarp::bridge_test {

namespace {

/// A party on b's side whose queue pairs of both kinds share one completion queue, and its peers.
struct OneQueue {
  explicit OneQueue(const DeviceOptions& options = {}) : devices(options) {
    join(a.qp, rc, devices.b);
  }
  void post_receives(uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      REQUIRE_FALSE(rc.post_recv({.wr_id = i, .sges = mr.sge(0, 100)}));
      REQUIRE_FALSE(ud.post_recv({.wr_id = 1000 + i, .sges = mr.sge(100, 100)}));
    }
  }
  std::error_code send_datagram(uint64_t wr_id = 0) {
    return from.qp.post_send(
        {.wr_id = wr_id, .sges = a.mr->sge(0, 10), .destination = ud.address()});
  }

  Devices devices;
  Party a{devices.a};
  Datagrams from{devices.a, a, 4096};
  Pages pages{4096};
  ProtectionDomain pd{devices.b};
  MemoryRegion mr{pd, pages.bytes()};
  CompletionChannel channel{devices.b};
  CompletionQueue cq{devices.b, 4096, channel, 7};
  QueuePair rc{pd, {.send_cq = cq, .recv_cq = cq}};
  QueuePair ud{pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq}};
  EventQueue events{devices.b};
};

/// Receives one message at a time, as a program does that sleeps on a channel. Returns how many of
/// `count` came.
uint64_t receive_by_events(OneQueue& scene, uint64_t count, std::atomic<uint64_t>& received) {
  while (received < count) {
    scene.cq.arm();
    std::array<WorkCompletion, 4> batch;
    const size_t polled = scene.cq.poll(batch);
    for (size_t i = 0; i < polled; ++i) {
      const bool datagram = batch[i].wr_id >= 1000;
      QueuePair& qp = datagram ? scene.ud : scene.rc;
      if (batch[i].status != WcStatus::success) return received;
      const Sge sge = scene.mr.sge(datagram ? 100 : 0, 100);
      if (qp.post_recv({.wr_id = batch[i].wr_id, .sges = sge})) return received;
      ++received;
    }
    if (polled == 0 && received < count && !scene.channel.get_event(kPatience)) break;
  }
  return received;
}

/// A shared receive queue on b's side, with some receives, and queue pairs of b that take from it.
struct Sharing {
  explicit Sharing(uint32_t receives) {
    for (uint64_t i = 0; i < receives; ++i)
      REQUIRE_FALSE(srq.post_recv({.wr_id = i, .sges = mr.sge(i * 100, 100)}));
  }
  QueuePair make(QpType type) {
    return QueuePair(pd, {.type = type, .send_cq = cq, .recv_cq = cq, .srq = srq});
  }

  Devices devices;
  Party a{devices.a};
  Datagrams from{devices.a, a};
  Pages pages{4096};
  ProtectionDomain pd{devices.b};
  MemoryRegion mr{pd, pages.bytes()};
  CompletionQueue cq{devices.b, 64};
  SharedReceiveQueue srq{pd, {.max_wr = 16, .context = 5}};
};

}  // namespace

TEST_CASE("One completion queue has the completions of connections and of datagrams") {
  const Fresh fresh;
  OneQueue scene;
  scene.post_receives(10);
  for (int i = 0; i < 10; ++i) {
    REQUIRE_FALSE(scene.a.send(0, 10));
    REQUIRE_FALSE(scene.send_datagram());
  }
  std::multiset<uint64_t> came;
  for (int i = 0; i < 20; ++i) {
    const WorkCompletion one = next_good(scene.cq);
    came.insert(one.wr_id);
    const bool datagram = one.wr_id >= 1000;
    CHECK(one.qp_number == (datagram ? scene.ud.number() : scene.rc.number()));
  }
  for (uint64_t i = 0; i < 10; ++i) {
    CHECK(came.count(i) == 1);
    CHECK(came.count(1000 + i) == 1);
  }
}

TEST_CASE("One channel wakes for connections and datagrams, thousands of times, and misses none") {
  constexpr uint64_t kMessages = 4000;
  const Fresh fresh;
  OneQueue scene;
  scene.post_receives(8);
  std::atomic<uint64_t> received{0};
  auto receiving =
      std::async(std::launch::async, [&] { return receive_by_events(scene, kMessages, received); });
  std::array<WorkCompletion, 16> done;
  for (uint64_t sent = 0; sent < kMessages; ++sent) {
    const std::error_code error =
        sent % 3 == 0 ? scene.a.send(0, 10, 0, SendFlags::none) : scene.send_datagram();
    if (error) break;
    while (received < sent && receiving.wait_for(0s) != std::future_status::ready)
      scene.from.send_cq.poll(done);
  }
  CHECK(receiving.get() == kMessages);
}

TEST_CASE("A wake of one half costs none of the other half's") {
  const Fresh fresh;
  OneQueue scene;
  scene.post_receives(64);
  for (int i = 0; i < 32; ++i) {
    scene.cq.arm();
    REQUIRE_FALSE(scene.a.send(0, 10));
    REQUIRE(scene.channel.get_event(kPatience));
    next_good(scene.cq);
    scene.cq.arm();
    REQUIRE_FALSE(scene.send_datagram());
    const std::optional<CompletionEvent> event = scene.channel.get_event(kPatience);
    REQUIRE(event);
    CHECK(event->context == 7);
    next_good(scene.cq);
  }
}

TEST_CASE("An event that was left in the channel takes none from the next arming") {
  const Fresh fresh;
  OneQueue scene;
  scene.post_receives(64);
  for (int i = 0; i < 32; ++i) {
    scene.cq.arm();
    REQUIRE_FALSE(scene.a.send(0, 10));
    REQUIRE_FALSE(scene.send_datagram());
    take(scene.cq, 2);  // their events stay
    scene.cq.arm();
    auto sending = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(1ms);
      return i % 2 == 0 ? scene.a.send(0, 10) : scene.send_datagram();
    });
    WorkCompletion one;
    while (scene.cq.poll({&one, 1}) == 0) REQUIRE(scene.channel.get_event(kPatience));
    CHECK_FALSE(sending.get());
  }
}

TEST_CASE("Of threads that wait for one completion queue each gets a completion") {
  constexpr int kWaiting = 3;
  const Fresh fresh;
  Devices devices;
  Party a(devices.a);
  Party b(devices.b);
  join(a.qp, b.qp, devices.b);
  for (int round = 0; round < 20; ++round) {
    b.post_receives(kWaiting, 100);
    std::vector<std::future<bool>> waiting;
    for (int i = 0; i < kWaiting; ++i)
      waiting.push_back(
          std::async(std::launch::async, [&] { return b.recv_cq.wait(kPatience).has_value(); }));
    std::this_thread::sleep_for(2ms);  // so that some sleep, and some spin
    for (int i = 0; i < kWaiting; ++i) REQUIRE_FALSE(a.send(0, 10));
    for (std::future<bool>& one : waiting) CHECK(one.get());
    take(a.send_cq, kWaiting);
  }
}

TEST_CASE("One event queue has the events of connections and of datagrams") {
  const Fresh fresh;
  OneQueue scene;
  SharedReceiveQueue srq(scene.pd, {.max_wr = 16, .limit = 2, .context = 5});
  for (uint64_t i = 0; i < 2; ++i)
    REQUIRE_FALSE(srq.post_recv({.wr_id = i, .sges = scene.mr.sge(0, 100)}));
  const QueuePair ud(scene.pd,
                     {.type = QpType::ud, .send_cq = scene.cq, .recv_cq = scene.cq, .srq = srq});
  while (scene.events.get_event(Duration::zero())) {
  }
  srq.set_limit(2);
  REQUIRE_FALSE(
      scene.from.qp.post_send({.sges = scene.a.mr->sge(0, 10), .destination = ud.address()}));
  CHECK(next_event(scene.events, AsyncEventType::srq_limit_reached).context == 5);
  scene.a.qp.disconnect({.timeout = kPatience});
  CHECK(next_event(scene.events, AsyncEventType::peer_closed).qp_number == scene.rc.number());
}

TEST_CASE("A shared receive queue serves connections, with receives that were posted before") {
  const Fresh fresh;
  Sharing scene(4);
  CHECK(scene.srq.query().posted == 4);
  QueuePair first = scene.make(QpType::rc);
  CHECK(scene.srq.query().posted == 4);
  CHECK(refusal([&] { scene.make(QpType::ud); }) == Errc::invalid_argument);
  join(scene.a.qp, first, scene.devices.b);
  scene.a.fill(0, 50, 3);
  for (uint64_t i = 0; i < 4; ++i) {
    REQUIRE_FALSE(scene.a.send(0, 50));
    CHECK(next_good(scene.cq).wr_id == i);
    CHECK_FALSE(test::first_wrong(scene.pages.bytes().subspan(i * 100, 50), 3));
  }
  CHECK(scene.srq.query().posted == 0);
}

TEST_CASE("A shared receive queue serves datagrams, with receives that were posted before") {
  const Fresh fresh;
  Sharing scene(4);
  const QueuePair first = scene.make(QpType::ud);
  CHECK(refusal([&] { scene.make(QpType::rc); }) == Errc::invalid_argument);
  const QueuePair second = scene.make(QpType::ud);
  scene.a.fill(0, 50, 3);
  for (uint64_t i = 0; i < 4; ++i) {
    const QueuePair& to = i % 2 == 0 ? first : second;
    REQUIRE_FALSE(
        scene.from.qp.post_send({.sges = scene.a.mr->sge(0, 50), .destination = to.address()}));
    CHECK(next_good(scene.cq).wr_id == i);
    CHECK_FALSE(test::first_wrong(scene.pages.bytes().subspan(i * 100, 50), 3));
  }
}

TEST_CASE("Receives that were posted before are handed over later where the device refused some") {
  const Fresh fresh;
  Sharing scene(4);
  fake().fail("ibv_post_srq_recv", 2, ENOMEM);
  CHECK(refusal([&] { scene.make(QpType::rc); }));
  QueuePair qp = scene.make(QpType::rc);
  CHECK(scene.srq.query().posted == 4);
  join(scene.a.qp, qp, scene.devices.b);
  for (uint64_t i = 0; i < 4; ++i) {
    REQUIRE_FALSE(scene.a.send(0, 50));
    CHECK(next_good(scene.cq).wr_id == i);
  }
}

TEST_CASE("A device that the application moves on itself does connections and datagrams") {
  const Fresh fresh;
  Devices devices({.progress = Progress::manual});
  Party a(devices.a);
  Party b(devices.b);
  Datagrams from(devices.a, a);
  Datagrams to(devices.b, b);
  join(a.qp, b.qp, devices.b);
  check_message(a, b, 1);
  check_message(b, a, 2);
  b.clear();
  REQUIRE_FALSE(to.qp.post_recv({.wr_id = 3, .sges = b.mr->sge(0, 100)}));
  a.fill(0, 50, 4);
  REQUIRE_FALSE(from.send(to, 0, 50));
  next_good(from.send_cq);
  CHECK(next_good(to.recv_cq).wr_id == 3);
  CHECK(b.holds(0, 50, 4));
  auto ending = std::async(std::launch::async, [&] { a.qp.disconnect({.timeout = kPatience}); });
  CHECK(b.qp.wait_disconnected(kPatience));
  while (ending.wait_for(1ms) != std::future_status::ready) devices.b.progress();
  ending.get();
}

}  // namespace diwarp::bridge_test
