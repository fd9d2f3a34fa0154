// SPDX-License-Identifier: Apache-2.0
#include "bridge/sweep.h"
#include "bridge/datagrams.h"

/// Each call of libibverbs and librdmacm fails once: what rests on it is told so, nothing hangs,
/// and nothing is left behind.
namespace diwarp::bridge_test {

namespace {

constexpr Access kBindable = kOpen | Access::window_bind | Access::any_source;

/// Opens devices in all ways, and makes one of each object.
void make_objects() {
  const Device by_address =
      Device::open(Address::parse("127.0.0.1"), {.hardware = Hardware::require});
  const Device device = open_hardware();
  const EventQueue events(device);
  const ProtectionDomain pd(device);
  const CompletionChannel channel(device);
  const CompletionQueue cq(device, 16, channel);
  const CompletionQueue alone(device, 16);
  const Pages pages(4096);
  const MemoryRegion mr(pd, pages.bytes());
  const MemoryRegion moved(pd, pages.bytes(), kOpen, 0x1000);
  const MemoryWindow window(pd);
  SharedReceiveQueue srq(pd, {.limit = 1});
  posted(srq.post_recv({.wr_id = 1, .sges = mr.sge(0, 100)}));
  QueuePair shared(pd, {.send_cq = cq, .recv_cq = alone, .srq = srq});
  QueuePair own(pd, {.send_cq = cq, .recv_cq = cq});
  posted(own.post_recv({.wr_id = 2, .sges = mr.sge(0, 100)}));
  own.modify(QpState::reset);
  own.modify(QpState::init);
  own.modify(QpState::error);
  const CmEventChannel cm_channel;
  const CmId id(device, cm_channel);
  const Listener listener(device, 0);
}

/// Two devices with a queue pair each.
struct Sides {
  Devices devices;
  Party a{devices.a, {.access = kBindable}};
  Party b{devices.b, {.access = kBindable}};
};

/// A message, a Write, and a Read of what was written.
void exchange(Sides& sides) {
  Party& a = sides.a;
  Party& b = sides.b;
  a.fill(0, 100, 1);
  posted(b.post_recv(1, 200, 100));
  posted(a.send(0, 100));
  good(a.send_cq);
  good(b.recv_cq);
  REQUIRE(b.holds(200, 100, 1));
  posted(a.write(0, 100, b.remote(400)));
  posted(a.read(600, 100, b.remote(400)));
  good(a.send_cq);
  good(a.send_cq);
  REQUIRE(a.holds(600, 100, 1));
}

/// A window is bound, written through, and taken back by the peer.
void use_window(Sides& sides, const MemoryWindow& window) {
  Party& a = sides.a;
  Party& b = sides.b;
  posted(b.qp.post_send({.opcode = WrOpcode::bind_window,
                         .binding = {.stag = window.stag(),
                                     .region = b.mr->lkey(),
                                     .address = b.bytes(800, 0).data(),
                                     .length = 100,
                                     .access = Access::remote_write}}));
  good(b.send_cq);
  posted(a.write(0, 100, {window.stag(), 0}));
  good(a.send_cq);
  posted(b.post_recv(2, 0, 0));
  posted(
      a.qp.post_send({.opcode = WrOpcode::send_with_invalidate, .invalidate_stag = window.stag()}));
  good(a.send_cq);
  good(b.recv_cq);
  REQUIRE(b.holds(800, 100, 1));
}

/// A message that a sleeping receiver is told of, and one that finds a receive of several queue
/// pairs'.
void wake_by_channel(Sides& sides) {
  const Device& device = sides.devices.b;
  CompletionChannel channel(device);
  CompletionQueue cq(device, 16, channel, 3);
  SharedReceiveQueue srq(sides.b.pd);
  QueuePair qp(sides.b.pd, {.send_cq = cq, .recv_cq = cq, .srq = srq});
  Party from(sides.devices.a);
  connect(from.qp, qp, device);
  posted(srq.post_recv({.wr_id = 5, .sges = sides.b.mr->sge(0, 100)}));
  cq.arm();
  posted(from.send(0, 100));
  if (!channel.get_event(kBounded)) throw TimedOut("no completion event");
  REQUIRE(good(cq).wr_id == 5);
}

void exchange_by_calls() {
  Sides sides;
  EventQueue events(sides.devices.b);
  const MemoryWindow window(sides.b.pd);
  connect(sides.a.qp, sides.b.qp, sides.devices.b);
  exchange(sides);
  use_window(sides, window);
  wake_by_channel(sides);
  sides.a.qp.disconnect({.timeout = kBounded});
  if (!sides.b.qp.wait_disconnected(kBounded)) throw TimedOut("the connection did not end");
  if (!events.get_event(kBounded)) throw TimedOut("no event of the connection's end");
}

void exchange_by_ids() {
  Sides sides;
  CmEventChannel client_channel;
  CmEventChannel server_channel;
  CmId listener(sides.devices.b, server_channel);
  listener.listen();
  CmId client(sides.devices.a, client_channel);
  client.resolve_addr(listener.local_address());
  event(client_channel, CmEventType::addr_resolved);
  client.resolve_route();
  event(client_channel, CmEventType::route_resolved);
  client.connect(sides.a.qp, {.timeout = kBounded});
  for (;;) {  // either side may be the one that is told of a failure
    if (std::optional<CmEvent> failed = client_channel.get_event(1ms))
      throw Told(std::string(to_string(failed->type)));
    std::optional<CmEvent> asked = server_channel.get_event(1ms);
    if (!asked) continue;
    asked->request->accept(sides.b.qp);
    event(client_channel, CmEventType::established);
    event(server_channel, CmEventType::established);
    exchange(sides);
    client.disconnect({.timeout = kBounded});
    event(client_channel, CmEventType::disconnected);
    event(server_channel, CmEventType::disconnected);
    return;
  }
}

}  // namespace

TEST_CASE("A failed call while objects are made is told, and nothing stays") {
  sweep(make_objects);
}

TEST_CASE("A failed call while devices are listed leaves the others in the list") {
  const Fresh fresh;
  for (const char* function : {"ibv_get_device_list", "ibv_open_device", "ibv_query_device",
                               "ibv_query_port", "ibv_alloc_pd", "ibv_reg_mr", "rdma_bind_addr",
                               "rdma_create_event_channel", "rdma_create_id"}) {
    CAPTURE(function);
    fake().clear();
    fake().fail(function, 0, EIO);
    const std::vector<DeviceInfo> devices = Device::list();
    CHECK(std::ranges::any_of(devices, [](const DeviceInfo& one) { return !one.hardware; }));
    fake().clear();
    CHECK(Device::list().size() >= devices.size());
  }
}

TEST_CASE("A failed call while queue pairs connect and exchange is told, and nothing stays") {
  sweep(exchange_by_calls);
}

TEST_CASE("A failed call while ids connect and exchange is told, and nothing stays") {
  sweep(exchange_by_ids);
}

TEST_CASE("A rejection that cannot be sent is told, and the peer does not wait") {
  const Fresh fresh;
  Sides sides;
  Listener listener(sides.devices.b, 0);
  auto connecting = std::async(std::launch::async, [&] {
    return refusal([&] { sides.a.qp.connect(listener.address(), {.timeout = kBounded}); });
  });
  std::optional<ConnectionRequest> request = listener.get_request(kBounded);
  REQUIRE(request);
  fake().fail("rdma_reject", 0, EIO);
  CHECK(refusal([&] { request->reject(); }));
  CHECK(connecting.get());  // the request is gone in any case
}

TEST_CASE("What comes to a completion queue that could not be destroyed is nobody's") {
  fake().clear();
  const Devices devices;
  Party party(devices.a);
  CompletionChannel channel(devices.a);
  CompletionQueue other(devices.a, 16, channel, 2);
  {
    CompletionQueue kept(devices.a, 16, channel, 1);
    QueuePair qp(party.pd, {.send_cq = kept, .recv_cq = kept});
    Party from(devices.b);
    join(from.qp, qp, devices.a);
    REQUIRE_FALSE(qp.post_recv({.sges = party.mr->sge(0, 100)}));
    kept.arm();
    fake().fail("ibv_destroy_qp", 0, EIO);
  }  // its receive is flushed, which makes an event
  CHECK_FALSE(channel.get_event(kMoment));
  QueuePair qp(party.pd, {.send_cq = other, .recv_cq = other});
  Party from(devices.b);
  join(from.qp, qp, devices.a);
  REQUIRE_FALSE(qp.post_recv({.sges = party.mr->sge(0, 100)}));
  other.arm();
  REQUIRE_FALSE(from.send(0, 10));
  const std::optional<CompletionEvent> event = channel.get_event(kPatience);
  REQUIRE(event);
  CHECK(event->context == 2);
}

}  // namespace diwarp::bridge_test
