// SPDX-License-Identifier: Apache-2.0
#include "provider/async_event_list.h"
#include "rnic/queues/qp_state.h"
#include "stack/rc_support.h"

/// The states of RC queue pairs, and the events that tell of them.
namespace diwarp::test {

namespace {

StreamAttributes over(RawStream socket, bool initiator) {
  return {.descriptor = socket.take().release(), .initiator = initiator};
}

}  // namespace

TEST_CASE("Queue pairs are moved by hand to rtr, with a connection, and to rts") {
  World world;
  RcParty a(world.add_device());
  RcParty b(world.add_device());
  auto [one, two] = raw_pair();
  a.qp.modify_to_rtr(over(std::move(one), true));
  b.qp.modify_to_rtr(over(std::move(two), false));
  CHECK(a.qp.state() == QpState::rtr);
  CHECK(a.send(0, 10) == Errc::invalid_state);
  REQUIRE_FALSE(b.post_recv(1, 0, 100));
  a.qp.modify(QpState::rts);
  REQUIRE_FALSE(a.send(0, 10));
  CHECK(step_until_completed(world, b.recv_cq));  // received in rtr
  b.qp.modify(QpState::rts);
  REQUIRE_FALSE(a.post_recv(1, 0, 100));
  REQUIRE_FALSE(b.send(0, 10));
  CHECK(step_until_completed(world, a.recv_cq));
}

TEST_CASE("A descriptor that is no TCP connection is refused, and the queue pair stays in init") {
  World world;
  RcParty a(world.add_device());
  const UniqueFd udp(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  CHECK_THROWS_AS(a.qp.modify_to_rtr({.descriptor = udp.get()}), Error);
  sockaddr_storage name;
  const socklen_t length = Address::parse("127.0.0.1", 9).to_sockaddr(name);
  REQUIRE(::connect(udp.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  CHECK_THROWS_AS(a.qp.modify_to_rtr({.descriptor = udp.get()}), Error);
  CHECK_THROWS_AS(a.qp.modify_to_rtr({.descriptor = -1}), Error);
  CHECK(a.qp.state() == QpState::init);
}

TEST_CASE("In sqd requests that were begun are finished and told, and posted ones wait") {
  Couple couple({}, {.access = kOpen});
  RcParty& a = couple.a;
  EventQueue events(couple.device_of_a());
  REQUIRE_FALSE(a.post(WrOpcode::rdma_read, 0, 1000, couple.b.remote(), 1));
  couple.device_of_a().progress();
  a.qp.modify(QpState::sqd);
  REQUIRE_FALSE(a.post(WrOpcode::rdma_write, 0, 10, couple.b.remote(), 2));
  couple.device_of_a().progress();
  CHECK_FALSE(events.get_event(Duration::zero()));  // the Read is not answered
  couple.world.settle();
  const std::optional<AsyncEvent> drained = events.get_event(Duration::zero());
  REQUIRE(drained);
  CHECK(drained->type == AsyncEventType::sq_drained);
  CHECK(drained->qp_number == a.qp.number());
  CHECK_FALSE(events.get_event(Duration::zero()));
  auto done = drain(a.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 1);
  a.qp.modify(QpState::rts);
  couple.world.settle();
  done = drain(a.send_cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 2);
}

TEST_CASE("A queue pair in sqd still receives and answers Reads") {
  Couple couple({.access = kOpen}, {});
  couple.a.qp.modify(QpState::sqd);
  couple.a.post_receives(1, 100);
  REQUIRE_FALSE(couple.b.post_recv(0, 0, 10));
  couple.world.settle();
  // b is the responder and may not speak first: let a have spoken.
  couple.a.qp.modify(QpState::rts);
  REQUIRE_FALSE(couple.a.send(0, 1));
  couple.world.settle();
  couple.a.qp.modify(QpState::sqd);
  REQUIRE_FALSE(couple.b.post(WrOpcode::rdma_read, 0, 100, couple.a.remote()));
  REQUIRE_FALSE(couple.b.send(0, 5));
  couple.world.settle();
  CHECK(statuses(couple.b.send_cq) == Statuses{WcStatus::success, WcStatus::success});
  CHECK(statuses(couple.a.recv_cq) == Statuses{WcStatus::success});
}

TEST_CASE("The table of moves is what modify() obeys") {
  const std::array all{QpState::reset, QpState::init,    QpState::rtr,  QpState::rts,
                       QpState::sqd,   QpState::closing, QpState::error};
  for (QpState from : {QpState::init, QpState::rtr, QpState::rts, QpState::sqd, QpState::error}) {
    for (QpState to : all) {
      Couple couple;
      QueuePair& qp = couple.a.qp;
      if (from == QpState::init || from == QpState::error) qp.modify(QpState::error);
      if (from == QpState::init) {
        qp.modify(QpState::reset);
        qp.modify(QpState::init);
      }
      if (from == QpState::sqd) qp.modify(QpState::sqd);
      if (from == QpState::rtr) {
        qp.modify(QpState::error);
        qp.modify(QpState::reset);
        qp.modify(QpState::init);
        couple.a.impl().start(negotiated(llp::memory_stream_pair(1 << 16, 256).first, true),
                              QpState::rtr);
      }
      REQUIRE(qp.state() == from);
      INFO(to_string(from) << " to " << to_string(to));
      const bool nothing_to_do = from == to && to == QpState::error;
      if (nothing_to_do || rnic::transitions::allowed(QpType::rc, from, to)) {
        qp.modify(to);
        CHECK(qp.state() == to);
      } else {
        CHECK_THROWS_AS(qp.modify(to), Error);
        CHECK(qp.state() == from);
      }
    }
  }
}

// --- Events.

TEST_CASE("An orderly end is told to the side that did not ask for it") {
  const Device one = Device::open("127.0.0.1");
  const Device other = Device::open("127.0.0.1");
  RcParty a(one);
  RcParty b(other);
  connect(a, b, other);
  EventQueue of_one(one);
  EventQueue of_other(other);
  a.qp.disconnect();
  const std::optional<AsyncEvent> told = of_other.get_event(kPatience);
  REQUIRE(told);
  CHECK(told->type == AsyncEventType::peer_closed);
  CHECK(told->qp_number == b.qp.number());
  CHECK_FALSE(told->terminate);
  CHECK_FALSE(of_one.get_event(Duration::zero()));
}

TEST_CASE("A lost connection is told as fatal") {
  Couple couple;
  EventQueue events(couple.device_of_b());
  couple.b.qp.modify(QpState::error);
  couple.b.qp.modify(QpState::reset);
  couple.b.qp.modify(QpState::init);
  auto fresh = llp::memory_stream_pair(1 << 16, 256);
  couple.b.impl().start(negotiated(std::move(fresh.second), false));
  fresh.first->abort();
  couple.world.settle();
  const std::optional<AsyncEvent> told = events.get_event(Duration::zero());
  REQUIRE(told);
  CHECK(told->type == AsyncEventType::qp_fatal);
  CHECK_FALSE(told->terminate);
}

TEST_CASE("A completion queue that is full is told once until it is polled, and loses nothing") {
  Couple couple({.entries = 2}, {});
  EventQueue events(couple.device_of_a());
  couple.b.post_receives(5, 10);
  for (uint64_t i = 0; i < 5; ++i) REQUIRE_FALSE(couple.a.send(0, 1, i));
  couple.world.settle();
  const std::optional<AsyncEvent> told = events.get_event(Duration::zero());
  REQUIRE(told);
  CHECK(told->type == AsyncEventType::cq_overflow);
  CHECK_FALSE(events.get_event(Duration::zero()));
  size_t seen = 0;
  for (int round = 0; round < 10; ++round) {
    seen += drain(couple.a.send_cq).size();
    couple.world.settle();
  }
  CHECK(seen == 5);
}

TEST_CASE("A completion queue that is full holds up no connection that does not use it") {
  World world;
  Device& one = world.add_device();
  Device& other = world.add_device();
  RcParty full(one, {.entries = 1});
  RcParty free(one);
  RcParty b(other);
  RcParty d(other);
  join(b, full, llp::memory_stream_pair());
  join(d, free, llp::memory_stream_pair());
  full.post_receives(20, 10);
  free.post_receives(20, 10);
  for (uint64_t i = 0; i < 20; ++i) {
    REQUIRE_FALSE(b.send(0, 1, i));
    REQUIRE_FALSE(d.send(0, 1, i));
  }
  world.settle();
  CHECK(drain(free.recv_cq).size() == 20);
  // The queue is full now, and stays so.
  free.post_receives(20, 10);
  for (uint64_t i = 0; i < 20; ++i) REQUIRE_FALSE(d.send(0, 1, i));
  world.settle();
  CHECK(drain(free.recv_cq).size() == 20);
  CHECK(statuses(d.send_cq) == Statuses(40, WcStatus::success));
  CHECK(full.qp.state() == QpState::rts);
}

TEST_CASE("Every event queue of a device gets every event, and a full one loses the oldest") {
  World world;
  Device& device = world.add_device();
  EventQueue one(device);
  EventQueue other(device);
  for (uint32_t i = 0; i < provider::kMaxEvents + 3; ++i)
    software(device).raise({.type = AsyncEventType::sq_drained, .qp_number = i});
  CHECK(one.get_event(Duration::zero())->qp_number == 3);
  CHECK(other.get_event(Duration::zero())->qp_number == 3);
  CHECK(device.counter("events_dropped") == 6);
}

TEST_CASE("An event queue's descriptor polls readable while events wait") {
  World world;
  Device& device = world.add_device();
  EventQueue events(device);
  const auto readable = [&] {
    pollfd watched{events.descriptor(), POLLIN, 0};
    return ::poll(&watched, 1, 0) == 1;
  };
  CHECK_FALSE(readable());
  software(device).raise({.type = AsyncEventType::sq_drained});
  CHECK(readable());
  CHECK(events.get_event(Duration::zero()));
  CHECK_FALSE(readable());
  CHECK_FALSE(events.get_event(Duration::zero()));
}

// --- Numbers.

namespace {

struct Numbered {
  QueuePairInit with(uint32_t number, QpType type = QpType::rc) const {
    return {.type = type, .send_cq = cq, .recv_cq = cq, .number = number};
  }
  std::error_code refusal_of(uint32_t number, QpType type = QpType::rc) const {
    return refusal([&] { QueuePair(pd, with(number, type)); });
  }

  Device device = Device::open("127.0.0.1");
  ProtectionDomain pd{device};
  CompletionQueue cq{device, 16};
};

}  // namespace

TEST_CASE("the number of an RC queue pair is chosen, and is free again when that is gone") {
  const Numbered scene;
  for (const uint32_t number : {kLeastRcNumber, uint32_t{0x123456}, kMaxRcNumber}) {
    CAPTURE(number);
    {
      const QueuePair qp(scene.pd, scene.with(number));
      CHECK(qp.number() == number);
      CHECK(qp.query().number == number);
      CHECK(scene.refusal_of(number) == Errc::address_in_use);
    }
    CHECK(QueuePair(scene.pd, scene.with(number)).number() == number);
  }
}

TEST_CASE("the number of an RC queue pair lies above all ports and has 24 bits") {
  const Numbered scene;
  for (const uint32_t number : {1U, kLeastRcNumber - 1, kMaxRcNumber + 1, ~0U})
    CHECK(scene.refusal_of(number) == Errc::invalid_argument);
  for (const QpType type : {QpType::ud, QpType::rd})
    CHECK(scene.refusal_of(kLeastRcNumber, type) == Errc::invalid_argument);
}

TEST_CASE("the number of an RC queue pair that was chosen is not given to another") {
  const Numbered scene;
  const QueuePair first(scene.pd, scene.with(0));
  const uint32_t next = first.number() == kMaxRcNumber ? kLeastRcNumber : first.number() + 1;
  const QueuePair chosen(scene.pd, scene.with(next));  // the one that would be drawn next
  const QueuePair drawn(scene.pd, scene.with(0));
  CHECK(drawn.number() != first.number());
  CHECK(drawn.number() != next);
}

}  // namespace diwarp::test
