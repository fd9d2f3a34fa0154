// SPDX-License-Identifier: Apache-2.0
#include <infiniband/verbs.h>
#include <poll.h>

#include <array>
#include <future>
#include <thread>

#include "bridge/datagrams.h"

/// Events: none that somebody waits for is missed, also where the device tells of something else.
namespace diwarp::bridge_test {

namespace {

/// A connected queue pair whose sends and receives complete to one queue with a channel.
struct ArmedQueue {
  explicit ArmedQueue(uint32_t max_send_wr = 16)
      : qp(near.pd, {.send_cq = cq, .recv_cq = cq, .capacity = {.max_send_wr = max_send_wr}}) {
    join(peer.qp, qp, devices.a);
    for (uint64_t i = 0; i < 4; ++i)
      REQUIRE_FALSE(qp.post_recv({.wr_id = i, .sges = near.mr->sge(0, 100)}));
    peer.post_receives(8, 100);
  }

  /// A message whose completion nobody asked for; the device has completed it.
  void send_unsignaled() {
    REQUIRE_FALSE(qp.post_send({.sges = near.mr->sge(0, 10), .flags = SendFlags::none}));
    next_good(peer.recv_cq);
  }
  size_t poll() { return cq.poll({&completion, 1}); }
  /// The protocol of a program that armed the queue once, and found nothing in it. `come` is what
  /// brings a completion, after a while, and returns an error.
  template <class Come>
  void sleep_until(Come come) {
    REQUIRE(poll() == 0);
    auto coming = std::async(std::launch::async, [&] {
      std::this_thread::sleep_for(kMoment);
      return come();
    });
    do REQUIRE(channel.get_event(kPatience));
    while (poll() == 0);
    CHECK_FALSE(coming.get());
  }
  void sleep_until_message() {
    sleep_until([this] { return peer.send(0, 10); });
    CHECK(completion.opcode == WcOpcode::recv);
  }

  Devices devices;
  CompletionChannel channel{devices.a};
  CompletionQueue cq{devices.a, 64, channel};
  Party near{devices.a};
  Party peer{devices.b};
  QueuePair qp;
  WorkCompletion completion;
};

}  // namespace

TEST_CASE("A completion that is not shown does not use up an arming") {
  const Fresh fresh;
  ArmedQueue scene;
  scene.cq.arm();
  REQUIRE(scene.poll() == 0);
  scene.send_unsignaled();
  static_cast<void>(scene.channel.get_event(kMoment));  // of the device, for that
  scene.sleep_until_message();
}

TEST_CASE("A post that makes room for itself takes no wake-up from a program that sleeps") {
  const Fresh fresh;
  ArmedQueue scene(1);
  scene.cq.arm();
  REQUIRE(scene.poll() == 0);
  scene.send_unsignaled();
  static_cast<void>(scene.channel.get_event(kMoment));
  scene.send_unsignaled();  // fetches the completion of the one before
  scene.sleep_until_message();
}

TEST_CASE("After a late event, a queue pair that fails still wakes a program that sleeps") {
  const Fresh fresh;
  ArmedQueue scene;
  scene.cq.arm();
  REQUIRE_FALSE(scene.peer.send(0, 10));
  CHECK(next_good(scene.cq).opcode == WcOpcode::recv);  // its event stays in the channel
  scene.cq.arm();
  REQUIRE(scene.channel.get_event(kPatience));
  fake().fail("ibv_modify_qp", 0, EIO);  // so the device flushes nothing
  scene.sleep_until([&] { return refusal([&] { scene.qp.modify(QpState::error); }); });
  CHECK(scene.completion.status == WcStatus::wr_flush_error);
}

TEST_CASE("An event queue's descriptor is readable while there are events, and then no more") {
  constexpr int kEvents = 2000;
  const Fresh fresh;
  const Device device = open_hardware();
  EventQueue events(device);
  auto raising = std::async(std::launch::async, [] {
    for (int i = 0; i < kEvents; ++i)
      fake().raise("fake0", i % 2 == 0 ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE);
  });
  int taken = 0;
  while (taken < kEvents && events.get_event(kPatience)) ++taken;
  raising.get();
  CHECK(taken == kEvents);
  pollfd readable{.fd = events.descriptor(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&readable, 1, 0) == 0);
}

TEST_CASE("With Progress::manual a call that does not wait serves the device, too") {
  const Fresh fresh;
  const Device device = open_hardware({.progress = Progress::manual});
  EventQueue events(device);
  fake().raise("fake0", IBV_EVENT_PORT_ERR);
  const std::optional<AsyncEvent> event = events.get_event(0ns);
  REQUIRE(event);
  CHECK(event->type == AsyncEventType::port_error);
}

}  // namespace diwarp::bridge_test
