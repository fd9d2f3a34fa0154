// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "bridge/datagrams.h"
#include "contract/cm.h"

/// The device goes while something waits for it, and is used afterwards.
namespace diwarp::bridge_test {

namespace {

/// How long a call that waits may take to return after the device has gone.
constexpr auto kSoon = 10s;

/// Runs a call in a thread that waits, as far as that can be known, when the device goes.
template <class Call>
auto while_removed(Call call) {
  auto waiting = std::async(std::launch::async, std::move(call));
  CHECK(waiting.wait_for(kMoment) == std::future_status::timeout);
  fake().remove("fake0");
  CHECK(waiting.wait_for(kSoon) == std::future_status::ready);
  return waiting.get();
}

/// Two connected queue pairs, and datagrams beside them.
struct Scene {
  Scene() { join(a.qp, b.qp, devices.b); }
  void check_software_goes_on() {
    check_datagram(from, to, 1);
    check_datagram(to, from, 2);
  }

  Devices devices;
  Party a{devices.a};
  Party b{devices.b};
  Datagrams from{devices.a, a};
  Datagrams to{devices.b, b};
  EventQueue events{devices.a};
};

/// The events of a channel until each of these ids has had device_removal, and how many they had.
size_t removals(CmEventChannel& channel, std::vector<uint64_t> ids) {
  size_t count = 0;
  while (!ids.empty()) {
    const std::optional<CmEvent> event = channel.get_event(kSoon);
    if (!event) break;
    if (event->type != CmEventType::device_removal) continue;
    count += std::erase(ids, event->id);
  }
  return count;
}

}  // namespace

TEST_CASE("The device goes while connect() waits for the peer, which then says device_gone") {
  const Fresh fresh;
  const Device software = Device::open("127.0.0.1");
  Listener silent(software, 0);
  const Device device = open_hardware();
  Party party(device);
  const std::error_code code = while_removed(
      [&] { return refusal([&] { party.qp.connect(silent.address(), {.timeout = kPatience}); }); });
  CHECK(code == Errc::device_gone);
}

TEST_CASE("The device goes while get_request() waits, which then says device_gone") {
  const Fresh fresh;
  const Device device = open_hardware();
  Listener listener(device, 0);
  const auto wait = [&] { return refusal([&] { listener.get_request(kPatience); }); };
  CHECK(while_removed(wait) == Errc::device_gone);
  CHECK(wait() == Errc::device_gone);
}

TEST_CASE("The device goes while a request waits for an answer, which it does not take any more") {
  const Fresh fresh;
  const Device software = Device::open("127.0.0.1");
  Party peer(software);
  const Device device = open_hardware();
  Party party(device);
  Listener listener(device, 0);
  auto connecting = std::async(std::launch::async, [&] {
    return refusal([&] { peer.qp.connect(listener.address(), {.timeout = kPatience}); });
  });
  std::optional<ConnectionRequest> request = listener.get_request(kPatience);
  REQUIRE(request);
  fake().remove("fake0");
  CHECK(refusal([&] { request->accept(party.qp); }));
  request.reset();
  CHECK(connecting.get());
}

TEST_CASE("The device goes while a completion queue is waited for, and receives are flushed") {
  const Fresh fresh;
  Scene scene;
  scene.a.post_receives(2, 100);
  const std::optional<WorkCompletion> first =
      while_removed([&] { return scene.a.recv_cq.wait(kPatience); });
  REQUIRE(first);
  CHECK(first->status == WcStatus::wr_flush_error);
  CHECK(first->wr_id == 0);
  CHECK(next(scene.a.recv_cq).wr_id == 1);
  CHECK(eventually([&] { return scene.a.qp.state() == QpState::error; }));
  scene.check_software_goes_on();
}

TEST_CASE("The device goes while a channel is waited for, which tells of the flushed receives") {
  const Fresh fresh;
  const Devices devices;
  CompletionChannel channel(devices.a);
  CompletionQueue cq(devices.a, 16, channel, 99);
  Party a(devices.a);
  Party b(devices.b);
  QueuePair qp(a.pd, {.send_cq = cq, .recv_cq = cq});
  join(qp, b.qp, devices.b);
  REQUIRE_FALSE(qp.post_recv({.wr_id = 3, .sges = a.mr->sge(0, 100)}));
  cq.arm();
  const std::optional<CompletionEvent> event =
      while_removed([&] { return channel.get_event(kPatience); });
  REQUIRE(event);
  CHECK(event->context == 99);
  CHECK(next(cq).wr_id == 3);
}

TEST_CASE("The device goes while an event queue is waited for, which tells so") {
  const Fresh fresh;
  Scene scene;
  CHECK(while_removed([&] {
          for (;;) {
            const std::optional<AsyncEvent> event = scene.events.get_event(kPatience);
            if (!event || event->type == AsyncEventType::device_fatal) return event.has_value();
          }
        }) == true);
  CHECK(scene.a.qp.wait_disconnected(kSoon));
  scene.check_software_goes_on();
}

TEST_CASE("The device goes, and a queue pair that was connected is told to have failed with it") {
  const Fresh fresh;
  Scene scene;
  fake().remove("fake0");
  const std::optional<AsyncEvent> fatal = [&] {
    std::optional<AsyncEvent> event;
    do event = scene.events.get_event(kSoon);
    while (event && event->type != AsyncEventType::qp_fatal);
    return event;
  }();
  REQUIRE(fatal);
  CHECK(fatal->qp_number == scene.a.qp.number());
  CHECK(fatal->status == Errc::device_gone);
  REQUIRE_FALSE(scene.a.send(0, 10));
  CHECK(next(scene.a.send_cq).status == WcStatus::wr_flush_error);
}

TEST_CASE("The device goes, and each of its ids gets one device_removal, idle ones included") {
  const Fresh fresh;
  const Device device = open_hardware();
  CmEventChannel channel;
  CmId idle(device, channel);
  CmId listening(device, channel);
  listening.listen();
  CmId resolved(device, channel);
  resolved.resolve_addr(listening.local_address());
  next_event(channel, CmEventType::addr_resolved);
  CmId connecting(device, channel);
  Party party(device);
  connecting.resolve_addr(listening.local_address());
  next_event(channel, CmEventType::addr_resolved);
  connecting.connect(party.qp, {.timeout = kPatience});
  CmEvent asked = next_event(channel, CmEventType::connect_request);
  auto removed = std::async(std::launch::async, [&] {
    return removals(channel, {idle.number(), listening.number(), resolved.number(),
                              connecting.number(), asked.request->number()});
  });
  fake().remove("fake0");
  REQUIRE(removed.wait_for(kPatience) == std::future_status::ready);
  CHECK(removed.get() == 5);
  while (const std::optional<CmEvent> event = channel.get_event(kMoment))
    CHECK(event->type != CmEventType::device_removal);
}

TEST_CASE("The device goes while memory is registered, which is refused from then on") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  const Pages pages(4096);
  CHECK(while_removed([&] {
    std::error_code code;
    while (!code) code = refusal([&] { MemoryRegion(pd, pages.bytes()); });
    return code;
  }));
}

TEST_CASE("The device goes while disconnect() waits for the peer, which then returns") {
  const Fresh fresh;
  const Device software = Device::open("127.0.0.1");
  Party peer(software);
  const Device device = open_hardware();
  Party party(device);
  join(party.qp, peer.qp, software);
  REQUIRE_FALSE(party.send(0, 100));  // the peer holds it, and reads no further
  next_good(party.send_cq);
  CHECK(while_removed([&] {
    party.qp.disconnect({.timeout = kPatience});
    return true;
  }));
  CHECK(party.qp.state() == QpState::error);
}

TEST_CASE("The device goes while objects in use are destroyed, and all can be destroyed") {
  const Fresh fresh;
  for (int i = 0; i < 5; ++i) {
    auto scene = std::make_unique<Scene>();
    scene->a.post_receives(50, 100);
    scene->b.post_receives(50, 100);
    for (uint64_t k = 0; k < 20; ++k) REQUIRE_FALSE(scene->a.send(0, 100, k));
    auto ending = std::async(std::launch::async, [&] { scene.reset(); });
    fake().remove("fake0");
    CHECK(ending.wait_for(kSoon) == std::future_status::ready);
    ending.get();
    fake().clear();
  }
}

TEST_CASE("A device that is gone refuses new objects, and one that came back is opened again") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  fake().remove("fake0");
  CHECK(refusal([] { open_hardware(); }) == Errc::invalid_argument);
  CHECK(refusal([&] { ProtectionDomain{device}; }));
  CHECK(refusal([&] { CompletionQueue(device, 16); }));
  CHECK(refusal([&] { CompletionChannel{device}; }));
  CHECK(refusal([&] { SharedReceiveQueue{pd}; }));
  CHECK(refusal([&] { MemoryWindow{pd}; }));
  CHECK(refusal([&] { QueuePair(pd, {.send_cq = cq, .recv_cq = cq}); }));
  CHECK(refusal([&] { Listener(device, 0); }));
  fake().clear();
  Scene scene;
  check_message(scene.a, scene.b);
}

TEST_CASE("Nothing waits awake for a device that is gone") {
  const Fresh fresh;
  const Device device = open_hardware();
  EventQueue events(device);
  const ProtectionDomain pd(device);
  CompletionChannel channel(device);
  CompletionQueue cq(device, 16, channel);
  cq.arm();
  fake().remove("fake0");
  while (const auto event = events.get_event(kSoon))
    if (event->type == AsyncEventType::device_fatal) break;
  while (channel.get_event(0ns)) {
  }
  pollfd readable{.fd = channel.descriptor(), .events = POLLIN, .revents = 0};
  CHECK(::poll(&readable, 1, 0) == 0);
  // The thread that serves the device sleeps: it looks a few times, and not without end.
  std::this_thread::sleep_for(kMoment);
  const int before = fake().calls("ibv_get_async_event");
  std::this_thread::sleep_for(kMoment);
  CHECK(fake().calls("ibv_get_async_event") - before < 10);
}

TEST_CASE("A queue pair that is moved to error ends the connect() that waits with it") {
  const Fresh fresh;
  const Device software = Device::open("127.0.0.1");
  Listener silent(software, 0);
  const Device device = open_hardware();
  Party party(device);
  auto connecting = std::async(std::launch::async, [&] {
    return refusal([&] { party.qp.connect(silent.address(), {.timeout = kPatience}); });
  });
  REQUIRE(silent.get_request(kPatience));
  party.qp.modify(QpState::error);
  CHECK(connecting.wait_for(kSoon) == std::future_status::ready);
  CHECK(connecting.get());
}

TEST_CASE("A queue pair that is moved to error ends the wait for its end") {
  const Fresh fresh;
  Scene scene;
  auto waiting =
      std::async(std::launch::async, [&] { return scene.a.qp.wait_disconnected(kPatience); });
  CHECK(waiting.wait_for(kMoment) == std::future_status::timeout);
  scene.a.qp.modify(QpState::error);
  CHECK(waiting.wait_for(kSoon) == std::future_status::ready);
  CHECK(waiting.get());
}

}  // namespace diwarp::bridge_test
