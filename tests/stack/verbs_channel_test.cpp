// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

bool readable(int descriptor, int milliseconds = 0) {
  pollfd watched{descriptor, POLLIN, 0};
  return ::poll(&watched, 1, milliseconds) == 1;
}

/// A queue pair whose receives are told by a channel, and someone who sends to it.
struct Scene {
  explicit Scene(World& world_in)
      : world(world_in),
        device(world.add_device()),
        channel(device),
        send_cq(device, 16),
        recv_cq(device, 16, channel, 77),
        pd(device),
        qp(pd, {.type = QpType::ud, .send_cq = send_cq, .recv_cq = recv_cq}),
        source(world.add_device()) {
    for (int i = 0; i < 16; ++i) REQUIRE_FALSE(qp.post_recv({}));
  }

  void message(SendFlags flags = SendFlags::none) {
    REQUIRE_FALSE(source.send(qp.address(), 0, 0, 0, flags));
    world.settle();
  }

  World& world;
  Device& device;
  CompletionChannel channel;
  CompletionQueue send_cq;
  CompletionQueue recv_cq;
  ProtectionDomain pd;
  QueuePair qp;
  Party source;
};

}  // namespace

TEST_CASE("an armed completion queue gives one event for one arm") {
  World world;
  Scene scene(world);
  scene.message();
  CHECK_FALSE(scene.channel.get_event(0ns));  // not armed
  CHECK_FALSE(readable(scene.channel.descriptor()));

  scene.recv_cq.arm();
  CHECK_FALSE(scene.channel.get_event(0ns));  // completions that are there already do not count
  scene.message();
  scene.message();
  CHECK(readable(scene.channel.descriptor()));
  const auto event = scene.channel.get_event(0ns);
  REQUIRE(event);
  CHECK(event->context == 77);
  CHECK_FALSE(readable(scene.channel.descriptor()));
  CHECK_FALSE(scene.channel.get_event(0ns));

  scene.message();
  CHECK_FALSE(scene.channel.get_event(0ns));
  scene.recv_cq.arm();
  scene.recv_cq.arm();  // twice is once
  scene.message();
  scene.message();
  CHECK(scene.channel.get_event(0ns));
  CHECK_FALSE(scene.channel.get_event(0ns));
  CHECK(drain(scene.recv_cq).size() == 6);
}

TEST_CASE("armed for solicited ones only, plain completions give no event") {
  World world;
  Scene scene(world);
  scene.recv_cq.arm(true);
  scene.message();
  scene.message();
  CHECK_FALSE(scene.channel.get_event(0ns));
  scene.message(SendFlags::solicited);
  CHECK(scene.channel.get_event(0ns));
  scene.message(SendFlags::solicited);
  CHECK_FALSE(scene.channel.get_event(0ns));

  scene.recv_cq.arm(true);
  scene.qp.modify(QpState::error);  // a failed one counts as solicited
  CHECK(scene.channel.get_event(0ns));
}

TEST_CASE("arming for any completion after arming for solicited ones widens it") {
  World world;
  Scene scene(world);
  scene.recv_cq.arm(true);
  scene.recv_cq.arm(false);
  scene.message();
  CHECK(scene.channel.get_event(0ns));
}

TEST_CASE("several completion queues share a channel, and the context tells which") {
  World world;
  Device& device = world.add_device();
  CompletionChannel channel(device);
  Party source(world.add_device());
  struct Target {
    Target(const Device& device, const CompletionChannel& channel, uint64_t context)
        : pd(device),
          cq(device, 16, channel, context),
          qp(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq}) {
      for (int i = 0; i < 4; ++i) REQUIRE_FALSE(qp.post_recv({}));
      cq.arm();
    }
    ProtectionDomain pd;
    CompletionQueue cq;
    QueuePair qp;
  };
  std::deque<Target> targets;
  for (uint64_t i = 0; i < 5; ++i) targets.emplace_back(device, channel, 100 + i);
  const std::array<size_t, 5> order = {3, 1, 4, 0, 2};
  for (size_t i : order) {
    REQUIRE_FALSE(source.send(targets[i].qp.address(), 0, 0));
    world.settle();
  }
  for (size_t i : order) {
    const auto event = channel.get_event(0ns);
    REQUIRE(event);
    CHECK(event->context == 100 + i);
  }
  CHECK_FALSE(channel.get_event(0ns));
}

TEST_CASE("a completion queue without a channel can be armed, to no effect") {
  World world;
  Party source(world.add_device());
  Party target(world.add_device());
  target.post_receives(1, 10);
  target.recv_cq.arm();
  REQUIRE_FALSE(source.send(target.address(), 0, 10));
  world.settle();
  CHECK(drain(target.recv_cq).size() == 1);
}

TEST_CASE("a thread that sleeps on a channel is woken, and its descriptor can be polled") {
  for (Progress progress : {Progress::thread, Progress::manual}) {
    Device device = Device::open("127.0.0.1", {.progress = progress});
    CompletionChannel channel(device);
    CompletionQueue cq(device, 16, channel, 5);
    const ProtectionDomain pd(device);
    QueuePair qp(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq});
    for (int i = 0; i < 4; ++i) REQUIRE_FALSE(qp.post_recv({}));

    CHECK_FALSE(channel.get_event(1ms));
    cq.arm();
    std::thread sender([to = qp.address()] {
      RawSocket socket(Address::parse("127.0.0.1"));
      std::this_thread::sleep_for(50ms);
      socket.send(to, to_bytes({.msn = 1}));
    });
    const auto event = channel.get_event(kPatience);
    sender.join();
    REQUIRE(event);
    CHECK(event->context == 5);
    CHECK(drain(cq).size() == 1);

    if (progress == Progress::manual) continue;  // nobody would step while poll(2) sleeps
    cq.arm();
    RawSocket socket(Address::parse("127.0.0.1"));
    socket.send(qp.address(), to_bytes({.msn = 2}));
    REQUIRE(readable(channel.descriptor(), 30000));
    CHECK(channel.get_event(0ns));
    CHECK_FALSE(readable(channel.descriptor()));
  }
}

TEST_CASE("arm, poll once more, sleep: no completion is missed") {
  // The protocol of every event-driven program, against a sender that never stops.
  Device device = Device::open("127.0.0.1", {.spin = 0ns});
  CompletionChannel channel(device);
  CompletionQueue recv_cq(device, 64, channel);
  CompletionQueue send_cq(device, 64);
  const ProtectionDomain pd(device);
  QueuePair qp(pd, {.type = QpType::ud, .send_cq = send_cq, .recv_cq = recv_cq});
  Device other = Device::open("127.0.0.1");
  Party peer(other);
  REQUIRE_FALSE(peer.post_recv(0, 0, 0));
  for (int i = 0; i < 64; ++i) REQUIRE_FALSE(qp.post_recv({}));
  constexpr int kRounds = 5000;
  std::thread echo([&] {
    for (int i = 0; i < kRounds; ++i) {
      if (!peer.recv_cq.wait(10s)) return;
      if (peer.post_recv(0, 0, 0)) return;
      if (peer.send(qp.address(), 0, 0, 0, SendFlags::none)) return;
    }
  });
  int received = 0;
  WorkCompletion completion;
  for (bool missed = false; received < kRounds && !missed;) {
    REQUIRE_FALSE(qp.post_send({.flags = SendFlags::none, .destination = peer.address()}));
    recv_cq.arm();
    while (recv_cq.poll({&completion, 1}) == 0 && !missed)
      if (!channel.get_event(10s)) missed = true;
    if (missed) break;
    while (channel.get_event(0ns)) {
    }
    ++received;
    REQUIRE_FALSE(qp.post_recv({}));
  }
  echo.join();
  CHECK(received == kRounds);
}
