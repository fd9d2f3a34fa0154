// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>
#include <unistd.h>

#include "contract/pair.h"

/// What the two sides of a connection agree on, and connections over streams that were there
/// before.
namespace diwarp::contract {

namespace {

/// Two ends of a TCP connection. A queue pair owns the one that it is given.
struct TcpEnds {
  TcpEnds() {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_storage name;
    socklen_t length = Address::loopback(AddressFamily::ipv4).to_sockaddr(name);
    auto* const address = reinterpret_cast<sockaddr*>(&name);
    REQUIRE(::bind(listener, address, length) == 0);
    REQUIRE(::listen(listener, 1) == 0);
    REQUIRE(::getsockname(listener, address, &length) == 0);
    first = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(::connect(first, address, length) == 0);
    second = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    REQUIRE(second >= 0);
    ::close(listener);
  }
  int first = -1;
  int second = -1;
};

}  // namespace

TEST_CASE("ORD and IRD are what both sides can do, and query tells them") {
  Pair pair({}, {}, {.ord = 5, .ird = 3}, {.ord = 2, .ird = 4});
  const QueuePairAttributes a = pair.a.qp.query();
  const QueuePairAttributes b = pair.b.qp.query();
  CHECK(a.ord <= 5);
  CHECK(a.ord >= 4);  // a device may answer more Reads than it was asked to
  CHECK(b.ord == 2);
  CHECK(a.ird >= b.ord);
  CHECK(b.ird >= a.ord);
}

TEST_CASE("A request tells the depths of the peer that asks") {
  const Device device = open_device();
  const Device peer = open_peer();
  Party a(device);
  Party b(peer);
  Listener listener(peer, 0);
  auto connecting = std::async(std::launch::async, [&] {
    a.qp.connect(listener.address(), {.timeout = kPatience, .ord = 5, .ird = 3});
  });
  std::optional<ConnectionRequest> request = listener.get_request(kPatience);
  REQUIRE(request);
  const RequestedDepths depths = request->depths();
  CHECK(depths.ord == 3);
  CHECK(depths.ird == 5);
  if (has(peer.query().capabilities, Capability::mpa_choices)) CHECK(request->revision() == 2);
  request->accept(b.qp);
  connecting.get();
}

TEST_CASE("A connection may be one without Reads") {
  Pair pair({}, {}, {.ord = 0, .ird = 0}, {.ord = 0, .ird = 0});
  CHECK(pair.a.qp.query().ord == 0);
  CHECK(pair.b.qp.query().ord == 0);
  check_message(pair.a, pair.b);
}

TEST_CASE("Depths that cannot be told to the peer are refused with invalid_argument") {
  const Device device = open_device();
  const Device peer = open_peer();
  Party a(device);
  const Listener listener(peer, 0);
  for (const ConnectOptions& wrong : {ConnectOptions{.ord = 16383}, ConnectOptions{.ird = 16383}})
    CHECK(refusal([&] { a.qp.connect(listener.address(), wrong); }) == Errc::invalid_argument);
  CHECK(a.qp.state() == QpState::init);
}

TEST_CASE("A revision of MPA that is neither 1 nor 2 is refused with invalid_argument") {
  if (!needs(Capability::mpa_choices)) return;
  const Device device = open_device();
  const Device peer = open_peer();
  Party a(device);
  const Listener listener(peer, 0);
  for (const ConnectOptions& wrong : {ConnectOptions{.revision = 0}, ConnectOptions{.revision = 3}})
    CHECK(refusal([&] { a.qp.connect(listener.address(), wrong); }) == Errc::invalid_argument);
  CHECK(a.qp.state() == QpState::init);
}

TEST_CASE("A connection has CRCs if the side that connects asks for them") {
  if (!needs(Capability::mpa_choices)) return;
  Pair pair({}, {}, {.crc = true}, {.crc = false});
  CHECK(pair.a.qp.query().crc);
  CHECK(pair.b.qp.query().crc);
}

TEST_CASE("A connection has CRCs if the side that accepts asks for them") {
  if (!needs(Capability::mpa_choices)) return;
  Pair pair({}, {}, {.crc = false}, {.crc = true});
  CHECK(pair.a.qp.query().crc);
  CHECK(pair.b.qp.query().crc);
}

TEST_CASE("Without CRCs the same messages pass") {
  if (!needs(Capability::mpa_choices)) return;
  Pair pair({}, {}, {.crc = false}, {.crc = false});
  check_message(pair.a, pair.b, 1);
  check_message(pair.b, pair.a, 2);
}

TEST_CASE("A connection in revision 1 passes messages, the side that connected first") {
  if (!needs(Capability::mpa_choices)) return;
  Pair pair({}, {}, {.revision = 1});
  check_message(pair.a, pair.b, 1);
  check_message(pair.b, pair.a, 2);
}

TEST_CASE("A side that asks for markers gets them") {
  if (!needs(Capability::markers)) return;
  Pair pair({}, {}, {.markers = true}, {.markers = true});
  CHECK(pair.a.qp.query().receive_markers);
  CHECK(pair.b.qp.query().send_markers);
  CHECK(pair.b.qp.query().receive_markers);
  CHECK(pair.a.qp.query().send_markers);
}

TEST_CASE("Messages longer than the distance of markers pass among them") {
  if (!needs(Capability::markers)) return;
  Pair pair({}, {}, {.markers = true}, {.markers = true});
  pair.a.fill(0, 20'000, 4);
  REQUIRE_FALSE(pair.b.post_recv(1, 0, 20'000));
  REQUIRE_FALSE(pair.a.send(0, 20'000));
  CHECK(next_good(pair.b.recv_cq).byte_count == 20'000);
  CHECK(pair.b.holds(0, 20'000, 4));
}

TEST_CASE("Over a TCP connection that was there before, both sides start up and exchange data") {
  if (!needs(Capability::adopted_streams)) return;
  const Device device = open_device();
  const Device peer = open_peer();
  Party a(device);
  Party b(peer);
  const TcpEnds ends;
  const std::vector<std::byte> question = text("question");
  const std::vector<std::byte> answer = text("answer");
  auto accepting = std::async(std::launch::async, [&] {
    return b.qp.accept_on(ends.second, {.private_data = answer}, kPatience);
  });
  CHECK(a.qp.connect_on(ends.first, {.private_data = question, .timeout = kPatience}) == answer);
  CHECK(accepting.get() == question);
  CHECK(a.qp.state() == QpState::rts);
  CHECK(b.qp.state() == QpState::rts);
  check_message(a, b, 1);
  check_message(b, a, 2);
}

TEST_CASE("Over a TCP connection whose start-up is done, queue pairs go to rtr and to rts") {
  if (!needs(Capability::adopted_streams)) return;
  const Device device = open_device();
  const Device peer = open_peer();
  Party a(device);
  Party b(peer);
  const TcpEnds ends;
  a.qp.modify_to_rtr({.descriptor = ends.first, .initiator = true});
  b.qp.modify_to_rtr({.descriptor = ends.second, .initiator = false});
  CHECK(a.qp.state() == QpState::rtr);
  CHECK(a.send(0, 10) == Errc::invalid_state);
  a.qp.modify(QpState::rts);
  check_message(a, b, 1);  // b receives in rtr
  b.qp.modify(QpState::rts);
  check_message(b, a, 2);
}

TEST_CASE("A descriptor that is no connected TCP socket is refused and left alone") {
  if (!needs(Capability::adopted_streams)) return;
  const Device device = open_device();
  Party a(device);
  const int descriptor = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  CHECK(refusal([&] { a.qp.modify_to_rtr({.descriptor = descriptor}); }) == Errc::invalid_argument);
  CHECK(refusal([&] { a.qp.connect_on(descriptor); }));
  CHECK(refusal([&] { a.qp.accept_on(descriptor); }));
  CHECK(a.qp.state() == QpState::init);
  CHECK(::close(descriptor) == 0);
}

}  // namespace diwarp::contract
