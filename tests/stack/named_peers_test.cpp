// SPDX-License-Identifier: Apache-2.0
#include "rnic/cm/meeting.h"
#include "stack/rc_support.h"
#include "support/child.h"

/// RC queue pairs whose peers are named, and whose connections come underneath.
namespace diwarp::test {

namespace {

/// A device with a meeting point, and a queue pair of this number.
struct End {
  explicit End(uint32_t number, const char* address = "127.0.0.1", const RcOptions& options = {})
      : device(Device::open(address)),
        point(device, 0),
        pd(device),
        send_cq(device, 256),
        recv_cq(device, 256),
        qp(std::in_place, pd,
           QueuePairInit{.send_cq = send_cq, .recv_cq = recv_cq, .number = number}),
        memory(options.memory),
        mr(pd, std::span(memory)) {}

  /// How peers name it.
  NamedPeer name(Duration timeout = kPatience) const {
    return {.address = point.address(), .number = qp->number(), .timeout = timeout};
  }
  void await(const End& peer, Duration timeout = kPatience) { qp->await_peer(peer.name(timeout)); }
  void be_ready(const End& peer, Duration timeout = kPatience) {
    await(peer, timeout);
    qp->modify(QpState::rts);
  }
  std::error_code send(uint64_t wr_id, size_t length = 10) {
    return qp->post_send({.wr_id = wr_id, .sges = {mr.sge(0, length)}});
  }
  std::error_code post_recv(uint64_t wr_id, size_t offset = 1000) {
    return qp->post_recv({.wr_id = wr_id, .sges = {mr.sge(offset, 1000)}});
  }
  std::span<std::byte> bytes(size_t offset, size_t length) {
    return std::span(memory).subspan(offset, length);
  }

  Device device;
  MeetingPoint point;
  ProtectionDomain pd;
  CompletionQueue send_cq;
  CompletionQueue recv_cq;
  std::optional<QueuePair> qp;
  std::vector<std::byte> memory;
  MemoryRegion mr;
};

constexpr uint32_t kLow = 0x20000, kHigh = 0x30000;

/// A message of `from` comes to `to`, in a receive that is posted already.
void check_arrival(End& from, End& to) {
  CHECK(next(from.send_cq).status == WcStatus::success);
  const WorkCompletion came = next(to.recv_cq);
  CHECK(came.status == WcStatus::success);
  CHECK(came.byte_count == 10);
  CHECK(same(to.bytes(1000, 10), from.bytes(0, 10)));
}

/// A port at which no peer listens.
Address nobody() {
  const RawListener listener;
  return listener.address();
}

NamedPeer absent(Duration timeout, uint32_t number = kHigh) {
  return {.address = nobody(), .number = number, .timeout = timeout};
}

}  // namespace

TEST_CASE("named peers are connected underneath, whichever is named first") {
  for (const bool low_first : {true, false}) {
    CAPTURE(low_first);
    End low(kLow), high(kHigh);
    End& first = low_first ? low : high;
    End& second = low_first ? high : low;
    const auto contents = pattern(10, 1);
    std::ranges::copy(contents, first.memory.begin());
    REQUIRE_FALSE(first.post_recv(1));
    first.await(second);
    CHECK(first.qp->state() == QpState::rtr);
    CHECK(first.send(1) == Errc::invalid_state);
    first.qp->modify(QpState::rts);
    CHECK(first.qp->state() == QpState::rts);
    REQUIRE_FALSE(first.send(1));  // waits in the queue
    CHECK(first.qp->query().posted_sends == 1);
    std::this_thread::sleep_for(50ms);
    CHECK_FALSE(first.send_cq.wait(0ms));
    REQUIRE_FALSE(second.post_recv(1));
    second.be_ready(first);
    check_arrival(first, second);
    REQUIRE_FALSE(second.send(2));
    check_arrival(second, first);
    CHECK(first.qp->query().peer_address.with_port(0) == second.device.address());
  }
}

TEST_CASE("named peers that name each other at the same time are connected once") {
  for (int round = 0; round < 10; ++round) {
    End low(kLow), high(kHigh);
    REQUIRE_FALSE(low.post_recv(1));
    REQUIRE_FALSE(high.post_recv(1));
    auto other = std::async(std::launch::async, [&] { high.be_ready(low); });
    low.be_ready(high);
    other.get();
    REQUIRE_FALSE(low.send(1));
    REQUIRE_FALSE(high.send(1));
    check_arrival(low, high);
    CHECK(next(low.recv_cq).status == WcStatus::success);
    CHECK(low.device.counter("rc_connections") == 1);
    CHECK(high.device.counter("rc_connections") == 1);
  }
}

TEST_CASE("named peers of equal numbers are told apart by their addresses") {
  End one(kLow, "127.0.0.2"), other(kLow, "127.0.0.3");
  REQUIRE_FALSE(one.post_recv(1));
  other.be_ready(one);
  one.be_ready(other);
  REQUIRE_FALSE(other.send(1));
  check_arrival(other, one);
}

TEST_CASE("named peers are met on devices on all addresses, at the address that they chose",
          "[any]") {
  End low(kLow, "0.0.0.0"), high(kHigh, "0.0.0.0");
  const auto at = [](const End& end, const char* address, const char* source) {
    NamedPeer peer = end.name();
    peer.address = Address::parse(address, peer.address.port());
    peer.source = Address::parse(source);
    return peer;
  };
  REQUIRE_FALSE(high.post_recv(1));
  low.qp->await_peer(at(high, "127.0.0.5", "127.0.0.4"));
  high.qp->await_peer(at(low, "127.0.0.4", "127.0.0.5"));
  low.qp->modify(QpState::rts);
  REQUIRE_FALSE(low.send(1));
  check_arrival(low, high);
  CHECK(low.qp->query().local_address.with_port(0) == Address::parse("127.0.0.4"));
}

TEST_CASE("named peers may have addresses that are mapped into IPv6", "[any]") {
  End low(kLow, "::"), high(kHigh, "::");
  const auto mapped = [](const End& end) {
    NamedPeer peer = end.name();
    peer.address = Address::parse("::ffff:127.0.0.1", peer.address.port());
    peer.source = Address::parse("::ffff:127.0.0.1");
    return peer;
  };
  REQUIRE_FALSE(high.post_recv(1));
  low.qp->await_peer(mapped(high));
  high.qp->await_peer(mapped(low));
  low.qp->modify(QpState::rts);
  REQUIRE_FALSE(low.send(1));
  check_arrival(low, high);
}

TEST_CASE("named peers of another address family than the device are refused", "[any]") {
  End end(kLow, "0.0.0.0");
  NamedPeer peer = absent(1s);
  peer.address = Address::parse("::1", 5);
  peer.source = Address::parse("::1");
  CHECK(refusal([&] { end.qp->await_peer(peer); }) == Errc::invalid_argument);
  CHECK(end.qp->state() == QpState::init);
}

TEST_CASE("named peers that never come: the oldest send tells, the rest is flushed, and an event") {
  for (const uint32_t number : {kLow, 2 * kHigh}) {  // it connects, or it accepts
    CAPTURE(number);
    End end(number);
    EventQueue events(end.device);
    for (uint64_t id = 0; id < 3; ++id) REQUIRE_FALSE(end.post_recv(id));
    end.qp->await_peer(absent(100ms));
    end.qp->modify(QpState::rts);
    for (uint64_t id = 0; id < 3; ++id) REQUIRE_FALSE(end.send(id));
    CHECK(next(end.send_cq).status == WcStatus::retry_exceeded);
    for (int i = 0; i < 2; ++i) CHECK(next(end.send_cq).status == WcStatus::wr_flush_error);
    for (int i = 0; i < 3; ++i) CHECK(next(end.recv_cq).status == WcStatus::wr_flush_error);
    const auto told = events.get_event(kPatience);
    REQUIRE(told);
    CHECK(told->type == AsyncEventType::qp_fatal);
    CHECK(told->qp_number == end.qp->number());
    CHECK(told->status == Errc::timed_out);
    CHECK_FALSE(told->terminate);
    CHECK(end.qp->state() == QpState::error);
    CHECK_FALSE(events.get_event(Duration::zero()));
    CHECK(end.qp->wait_disconnected(kPatience));
    // A marker that is posted then comes last.
    REQUIRE_FALSE(end.send(9));
    CHECK(next(end.send_cq).wr_id == 9);
  }
}

TEST_CASE("named peers are awaited in sqd, too, which tells at once that nothing was begun") {
  End low(kLow), high(kHigh);
  EventQueue events(low.device);
  REQUIRE_FALSE(high.post_recv(1));
  low.be_ready(high);
  REQUIRE_FALSE(low.send(1));
  low.qp->modify(QpState::sqd);
  const auto drained = events.get_event(kPatience);
  REQUIRE(drained);
  CHECK(drained->type == AsyncEventType::sq_drained);
  high.be_ready(low);
  REQUIRE_FALSE(high.send(2));
  REQUIRE_FALSE(low.post_recv(2));
  check_arrival(high, low);  // the connection is there, and the Send waits still
  CHECK_FALSE(low.send_cq.wait(Duration::zero()));
  low.qp->modify(QpState::rts);
  check_arrival(low, high);
  CHECK_FALSE(events.get_event(Duration::zero()));
}

TEST_CASE("named peers that never come are told without a send, too") {
  End end(kLow);
  EventQueue events(end.device);
  REQUIRE_FALSE(end.post_recv(1));
  end.qp->await_peer(absent(50ms));
  CHECK(next(end.recv_cq).status == WcStatus::wr_flush_error);
  const auto told = events.get_event(kPatience);
  REQUIRE(told);
  CHECK(told->type == AsyncEventType::qp_fatal);
  CHECK(end.qp->state() == QpState::error);
}

TEST_CASE("named peers have the time that they were given last") {
  End low(kLow);
  EventQueue events(low.device);
  low.qp->limit_peer_wait(1ns);  // none is awaited
  NamedPeer peer = absent(Duration::max());
  SECTION("which may be shorter") {
    low.qp->await_peer(peer);
    CHECK(refusal([&] { low.qp->limit_peer_wait(Duration::zero()); }) == Errc::invalid_argument);
    low.qp->limit_peer_wait(1ms);
    const auto told = events.get_event(kPatience);
    REQUIRE(told);
    CHECK(told->status == Errc::timed_out);
  }
  SECTION("or longer") {
    peer.timeout = 2s;
    low.qp->await_peer(peer);
    low.qp->limit_peer_wait(kPatience);
    CHECK_FALSE(events.get_event(2500ms));
    CHECK(low.qp->state() == QpState::rtr);
  }
}

TEST_CASE("named peers that are not expected are rejected, and disturb nobody") {
  End low(kLow), high(kHigh);
  REQUIRE_FALSE(high.post_recv(1));
  high.be_ready(low);
  const auto ask = [&](std::span<const std::byte> data, const char* from = "127.0.0.1") {
    const Device stranger = Device::open(from);
    RcParty party(stranger);
    CHECK(refusal([&] {
            party.qp.connect(high.point.address(), {.private_data = data, .timeout = kPatience});
          }) == Errc::rejected);
  };
  using rnic::MeetingNames;
  ask({});
  ask(std::vector<std::byte>(12));
  ask(MeetingNames{.from = kLow + 1, .to = kHigh}.encode());           // another queue pair
  ask(MeetingNames{.from = kLow, .to = kHigh + 1}.encode());           // of no queue pair here
  ask(MeetingNames{.from = kLow, .to = kHigh}.encode(), "127.0.0.7");  // from another host
  auto longer = std::vector<std::byte>(13);
  const auto right = MeetingNames{.from = kLow, .to = kHigh}.encode();
  std::ranges::copy(right, longer.begin());
  ask(longer);
  ask(std::span(right).first(11));
  CHECK(high.qp->state() == QpState::rts);
  low.be_ready(high);
  REQUIRE_FALSE(low.send(1));
  check_arrival(low, high);
  ask(right);  // it is connected already
}

TEST_CASE("named peers are met though random bytes come to the meeting point") {
  End low(kLow), high(kHigh);
  REQUIRE_FALSE(high.post_recv(1));
  high.be_ready(low);
  Random random(3);
  for (int i = 0; i < 50; ++i) {
    RawStream stranger = RawStream::connect(high.point.address());
    std::vector<std::byte> noise(1 + random.below(600));
    for (std::byte& byte : noise) byte = static_cast<std::byte>(random.below(256));
    if (i % 2 == 0) {
      const auto frame = to_bytes(MpaFrame{.private_data = noise});
      if (noise.size() <= 512) noise = frame;
    }
    static_cast<void>(stranger.send(noise));
    if (i % 3 == 0) stranger.shutdown();
  }
  low.be_ready(high);
  REQUIRE_FALSE(low.send(1));
  check_arrival(low, high);
}

TEST_CASE("named peers are given up where the queue pair is destroyed, reset or disconnected") {
  for (const uint32_t number : {kLow, 2 * kHigh}) {
    CAPTURE(number);
    End end(number);
    EventQueue events(end.device);
    const auto wait_and_post = [&] {
      REQUIRE_FALSE(end.post_recv(1));
      end.qp->await_peer(absent(60s));
      end.qp->modify(QpState::rts);
      REQUIRE_FALSE(end.send(2));
    };
    wait_and_post();
    end.qp->modify(QpState::reset);
    CHECK(drain(end.send_cq).empty());
    end.qp->modify(QpState::init);
    wait_and_post();
    end.qp->disconnect({.timeout = kPatience});
    CHECK(end.qp->state() == QpState::error);
    CHECK(next(end.send_cq).status == WcStatus::wr_flush_error);
    CHECK(next(end.recv_cq).status == WcStatus::wr_flush_error);
    end.qp->modify(QpState::reset);
    end.qp->modify(QpState::init);
    wait_and_post();
    end.qp->modify(QpState::error);
    CHECK(next(end.send_cq).status == WcStatus::wr_flush_error);
    CHECK(next(end.recv_cq).status == WcStatus::wr_flush_error);
    end.qp->modify(QpState::reset);
    end.qp->modify(QpState::init);
    wait_and_post();
    end.qp.reset();
    CHECK_FALSE(events.get_event(20ms));  // none of it was an error
  }
}

TEST_CASE("named peers may be named again after a reset, and are then met") {
  End low(kLow), high(kHigh);
  for (int round = 0; round < 3; ++round) {
    for (End* end : {&low, &high}) {
      REQUIRE_FALSE(end->post_recv(1));
      end->await(end == &low ? high : low);
    }
    for (End* end : {&low, &high}) end->qp->modify(QpState::rts);
    REQUIRE_FALSE(low.send(1));
    check_arrival(low, high);
    for (End* end : {&low, &high}) {
      end->qp->modify(QpState::error);
      drain(end->send_cq);
      drain(end->recv_cq);
      end->qp->modify(QpState::reset);
      end->qp->modify(QpState::init);
    }
  }
}

TEST_CASE("named peers are destroyed with their device at any moment of the search") {
  for (int round = 0; round < 30; ++round) {
    std::optional<End> low(std::in_place, kLow), high(std::in_place, kHigh);
    low->be_ready(*high);
    high->be_ready(*low);
    REQUIRE_FALSE(low->send(1));
    std::this_thread::sleep_for(std::chrono::microseconds(100 * round));
    (round % 2 == 0 ? low : high).reset();
    if (round % 3 == 0) {
      EventQueue events((round % 2 == 0 ? high : low)->device);
      (round % 2 == 0 ? high : low)->qp->disconnect({.timeout = kPatience});
    }
  }
}

TEST_CASE("named peers of a forked child are its parent's") {
  End low(kLow), high(kHigh);
  REQUIRE_FALSE(high.post_recv(1));
  low.be_ready(high);
  const NamedPeer name = high.name();
  const Sge sge = low.mr.sge(0, 10);
  REQUIRE(eventually(others_sleep));
  CHECK(in_child([&] {
          if (low.qp->post_send({.sges = sge}) != Errc::device_gone) return 1;
          if (!says_device_gone([&] { low.qp->await_peer(name); })) return 2;
          low.qp.reset();
          return 0;
        }) == 0);
  high.be_ready(low);
  REQUIRE_FALSE(low.send(1));
  check_arrival(low, high);
}

TEST_CASE("named peers that cannot be are refused, and the queue pair stays in init") {
  End end(kLow);
  const auto refused = [&](NamedPeer peer) {
    const std::error_code code = refusal([&] { end.qp->await_peer(peer); });
    CHECK(end.qp->state() == QpState::init);
    return code;
  };
  const NamedPeer good = absent(1s);
  const auto with = [&](auto change) {
    NamedPeer peer = good;
    change(peer);
    return refused(peer);
  };
  CHECK(with([](NamedPeer& peer) { peer.number = 5; }) == Errc::invalid_argument);
  CHECK(with([](NamedPeer& peer) { peer.number = kMaxRcNumber + 1; }) == Errc::invalid_argument);
  CHECK(with([](NamedPeer& peer) { peer.timeout = Duration::zero(); }) == Errc::invalid_argument);
  CHECK(with([](NamedPeer& peer) { peer.ord = 16383; }) == Errc::invalid_argument);
  CHECK(with([](NamedPeer& peer) { peer.source = Address::parse("127.0.0.9"); }) ==
        Errc::invalid_argument);
  CHECK(with([](NamedPeer& peer) { peer.address = Address::parse("::1", 5); }) ==
        Errc::invalid_destination);
  CHECK(with([](NamedPeer& peer) { peer.address = peer.address.with_port(0); }) ==
        Errc::invalid_destination);
  CHECK(with([](NamedPeer& peer) { peer.number = kLow; }) == Errc::invalid_argument);  // itself
  end.qp->await_peer(good);
  CHECK(refusal([&] { end.qp->await_peer(good); }) == Errc::invalid_state);
  CHECK(refusal([&] { end.qp->connect(nobody()); }) == Errc::invalid_state);
}

TEST_CASE("named peers are for queue pairs of type rc") {
  const Device device = Device::open("127.0.0.1");
  Party party(device);
  CHECK(refusal([&] { party.qp.await_peer(absent(1s)); }) == Errc::unsupported_operation);
}

}  // namespace diwarp::test
