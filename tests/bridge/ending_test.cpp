// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <atomic>
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
