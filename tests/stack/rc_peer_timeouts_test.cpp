// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "llp/forwarding.h"
#include "stack/cm_support.h"

/// How connections get their keep-alive and user timeout. Their effect between hosts is tested in
/// tests/network (silent_test.py).
namespace diwarp::test {

namespace {

int option_of(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  ::getsockopt(fd, level, name, &value, &length);
  return value;
}

void check_timeouts(QueuePair& qp, Duration keep_alive, Duration user_timeout) {
  const QueuePairAttributes attributes = qp.query();
  CHECK(attributes.keep_alive == keep_alive);
  CHECK(attributes.user_timeout == user_timeout);
}

/// A stream that fails with an errno when it is told to.
class FailingStream final : public llp::ForwardingStream {
 public:
  FailingStream(StreamEnd inner, const int& at_send, const int& at_receive)
      : ForwardingStream(std::move(inner)), at_send_(at_send), at_receive_(at_receive) {}

  llp::IoResult send(std::span<const ConstBytes> pieces) override {
    if (at_send_ != 0) return {llp::IoStatus::failed, 0, at_send_};
    return ForwardingStream::send(pieces);
  }
  llp::IoResult receive(Bytes buffer) override {
    if (at_receive_ != 0) return {llp::IoStatus::failed, 0, at_receive_};
    return ForwardingStream::receive(buffer);
  }
  int error() override { return at_receive_; }

 private:
  const int& at_send_;
  const int& at_receive_;
};

constexpr StreamOptions kOwn{.keep_alive = 30s, .user_timeout = 10s};

}  // namespace

TEST_CASE("A connection has its queue pair's keep-alive and user timeout unless it wants others") {
  Server server;
  RcParty plain(server.device);
  RcParty own(server.device, {.stream = kOwn});
  SECTION("defaults") {
    connect(plain, own, server.device);
    check_timeouts(plain.qp, 60s, 20s);
    check_timeouts(own.qp, 30s, 10s);
  }
  SECTION("each side's own") {
    connect(own, plain, server.device, {.keep_alive = 6s}, {.user_timeout = 7s});
    check_timeouts(own.qp, 6s, 10s);
    check_timeouts(plain.qp, 60s, 7s);
  }
  SECTION("off") {
    connect(own, plain, server.device, {.keep_alive = 0s, .user_timeout = 0s});
    check_timeouts(own.qp, 0s, 0s);
  }
}

TEST_CASE("Connections of the connection manager have their own keep-alive and user timeout") {
  CmServer server;
  const Device device = Device::open("127.0.0.1");
  CmClient client(device);
  client.connect(server.listener.local_address(), {.keep_alive = 5s, .user_timeout = 6s});
  CmEvent event = server.request();
  event.request->accept(server.party.qp, {.keep_alive = 7s, .user_timeout = 8s});
  next_event(client.channel, CmEventType::established);
  next_event(server.channel, CmEventType::established);
  check_timeouts(client.party.qp, 5s, 6s);
  check_timeouts(server.party.qp, 7s, 8s);
}

TEST_CASE("An adopted descriptor's connection has the queue pair's timeouts unless told others") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device, {.stream = kOwn});
  auto [own, other] = raw_pair();
  party.qp.modify_to_rtr({.descriptor = own.take().release(), .keep_alive = 8s});
  check_timeouts(party.qp, 8s, 10s);
}

TEST_CASE("An adopted descriptor gets the connection's keep-alive and loses its user timeout",
          "[kernel]") {
  const Device device = Device::open("127.0.0.1");
  RcParty party(device, {.stream = kOwn});
  auto [own, other] = raw_pair();
  const int fd = ::dup(own.descriptor());
  const UniqueFd observed(fd);
  const int one_second = 1000;
  REQUIRE(::setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &one_second, sizeof one_second) == 0);
  party.qp.modify_to_rtr({.descriptor = own.take().release(), .keep_alive = 8s});
  check_timeouts(party.qp, 8s, 10s);
  CHECK(option_of(fd, SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE) == 4);
  CHECK(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT) == 0);
}

TEST_CASE("An end of which TCP says that the peer is silent is told as timed out") {
  const int error = GENERATE(ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ECONNRESET);
  const bool silent = error != ECONNRESET;
  CAPTURE(error);
  World world;
  RcParty a(world.add_device(), {.signal_all = true});
  RcParty b(world.add_device());
  int at_send = 0;
  int at_receive = 0;
  auto ends = llp::memory_stream_pair(1 << 20, 256);
  ends.first = std::make_unique<FailingStream>(std::move(ends.first), at_send, at_receive);
  join(a, b, std::move(ends));
  EventQueue events(world.devices[0]);
  a.post_receives(1, 10);
  world.settle();
  SECTION("receiving") { at_receive = error; }
  SECTION("sending") {
    at_send = error;
    REQUIRE_FALSE(a.send(0, 10));
  }
  world.settle();
  CHECK(a.qp.state() == QpState::error);
  CHECK(statuses(a.recv_cq) == Statuses{WcStatus::wr_flush_error});
  const std::optional<AsyncEvent> told = events.get_event(Duration::zero());
  REQUIRE(told);
  CHECK(told->type == AsyncEventType::qp_fatal);
  CHECK(told->status == (silent ? Errc::timed_out : Errc::connection_lost));
  CHECK(world.devices[0].counter("rc_peer_timeouts") == (silent ? 1 : 0));
}

TEST_CASE("Keep-alives and user timeouts that cannot be kept are refused") {
  const Device device = Device::open("127.0.0.1");
  const Duration keep_alive = GENERATE(Duration(-1s), Duration(4999ms), Duration(18h + 1s));
  const Duration user_timeout = GENERATE(Duration(-1s), Duration(4999ms), Duration(18h + 1s));
  const auto queue_pair = [&](const StreamOptions& options) {
    return refusal([&] { RcParty party(device, {.stream = options}); });
  };
  CHECK(queue_pair({.keep_alive = keep_alive}) == Errc::invalid_argument);
  CHECK(queue_pair({.user_timeout = user_timeout}) == Errc::invalid_argument);
  RcParty party(device);
  const Address nobody = Address::parse("127.0.0.1:9");
  CHECK(refusal([&] { party.qp.connect(nobody, {.keep_alive = keep_alive}); }) ==
        Errc::invalid_argument);
  auto [own, other] = raw_pair();
  const int fd = own.descriptor();
  CHECK(refusal([&] { party.qp.accept_on(fd, {.user_timeout = user_timeout}, 1s); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { party.qp.modify_to_rtr({.descriptor = fd, .keep_alive = keep_alive}); }) ==
        Errc::invalid_argument);
  CHECK(party.qp.state() == QpState::init);
}

}  // namespace diwarp::test
