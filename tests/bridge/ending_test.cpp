// SPDX-License-Identifier: Apache-2.0
#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "bridge/fake.h"
#include "contract/cm.h"

/// Objects that end while others go on with what they share.
namespace diwarp::bridge_test {

TEST_CASE("A thread may poll a completion queue while its queue pairs come and go") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  CompletionQueue cq(device, 4096);
  std::atomic<bool> over = false;
  std::thread polling([&] {
    std::array<WorkCompletion, 16> batch;
    while (!over) static_cast<void>(cq.poll(batch));
  });
  for (int round = 0; round < 200; ++round) {
    QueuePair qp(pd, {.send_cq = cq, .recv_cq = cq});
    for (int i = 0; i < 8; ++i) CHECK_FALSE(qp.post_recv({}));
    qp.modify(QpState::error);
  }
  over = true;
  polling.join();
}

TEST_CASE("Completions that wait while their queue pair goes keep no place of a shared queue") {
  constexpr uint32_t kReceives = 8;
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  CompletionQueue cq(device, 64);
  SharedReceiveQueue srq(pd, {.max_wr = kReceives});
  const auto post_all = [&] {
    for (uint32_t i = 0; i < kReceives; ++i) REQUIRE_FALSE(srq.post_recv({.wr_id = i}));
  };
  post_all();
  {
    Party a(device);
    QueuePair b(pd, {.send_cq = cq, .recv_cq = cq, .srq = srq});
    join(a.qp, b, device);
    for (uint32_t i = 0; i < kReceives; ++i) REQUIRE_FALSE(a.send(0, 0, i));
    for (uint32_t i = 0; i < kReceives; ++i) next_good(a.send_cq);
    a.qp.disconnect();
    CHECK(b.wait_disconnected(kPatience));
  }
  for (uint32_t i = 0; i < kReceives; ++i) CHECK(next(cq).opcode == WcOpcode::recv);
  post_all();
}

TEST_CASE("Queue pairs of a shared receive queue need its room in a completion queue once") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  const SharedReceiveQueue srq(pd, {.max_wr = 2048});
  std::vector<QueuePair> qps;
  for (int i = 0; i < 16; ++i)
    qps.emplace_back(
        pd,
        QueuePairInit{.send_cq = cq, .recv_cq = cq, .capacity = {.max_send_wr = 16}, .srq = srq});
  CHECK(qps.size() == 16);
}

/// A connection from a device to software, which has not answered yet.
struct Asked {
  Asked() {
    listener.listen();
    id.resolve_addr(listener.local_address());
    next_event(channel, CmEventType::addr_resolved);
    id.connect(party.qp, {.timeout = kPatience});
    request.emplace(std::move(*next_event(channel, CmEventType::connect_request).request));
  }
  void wait_fatal() {
    const auto told = [&](const std::optional<AsyncEvent>& event) {
      return event->type == AsyncEventType::qp_fatal && event->qp_number == party.qp.number();
    };
    std::optional<AsyncEvent> event;
    do REQUIRE((event = events.get_event(kPatience)));
    while (!told(event));
  }

  Device device = open_hardware();
  Device software = Device::open("127.0.0.1");
  EventQueue events{device};
  CmEventChannel channel;
  CmId listener{software, channel};
  CmId id{device, channel};
  Party party{device};
  Party peer{software};
  std::optional<CmId> request;
};

TEST_CASE(
    "A queue pair of which the device tells a failure stays in error while its id disconnects") {
  const Fresh fresh;
  Asked scene;
  scene.request->accept(scene.peer.qp);
  next_event(scene.channel, CmEventType::established);
  next_event(scene.channel, CmEventType::established);
  fake().fail("ibv_modify_qp", 0, EIO);  // so the device does not end the connection
  fake().raise("fake0", IBV_EVENT_QP_FATAL);
  scene.wait_fatal();
  scene.id.disconnect({.timeout = kPatience});
  CHECK(scene.party.qp.state() == QpState::error);
  next_event(scene.channel, CmEventType::disconnected);
  CHECK(scene.party.qp.state() == QpState::error);
  scene.party.qp.modify(QpState::reset);
}

TEST_CASE("A queue pair of which the device tells a failure while it connects is not connected") {
  const Fresh fresh;
  Asked scene;
  fake().raise("fake0", IBV_EVENT_QP_FATAL);
  next_event(scene.channel, CmEventType::connect_error);
  CHECK(scene.party.qp.state() == QpState::error);
  scene.wait_fatal();
}

TEST_CASE("An id whose queue pair goes while it connects is told that it failed") {
  const Fresh fresh;
  const Device device = open_hardware();
  CmEventChannel listening;
  CmId listener(device, listening);
  listener.listen();
  for (int round = 0; round < 20; ++round) {
    CmEventChannel events;
    CmId id(device, events);
    id.resolve_addr(listener.local_address());
    const auto resolved = events.get_event(kPatience);
    REQUIRE((resolved && resolved->type == CmEventType::addr_resolved));
    {
      Party party(device);
      id.connect(party.qp);
    }
    const auto end = events.get_event(kPatience);
    REQUIRE(end);
    CHECK(to_string(end->type) == to_string(CmEventType::connect_error));
  }
}

}  // namespace diwarp::bridge_test
