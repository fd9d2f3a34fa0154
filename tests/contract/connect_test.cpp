// SPDX-License-Identifier: Apache-2.0
#include <deque>
#include <thread>

#include "contract/pair.h"

/// QueuePair::connect() and Listener.
namespace diwarp::contract {

namespace {

using Bytes = std::vector<std::byte>;

/// A queue pair that connects, another device's listener, and a queue pair to accept with.
struct Meeting {
  /// Begins to connect, in another thread.
  std::future<Bytes> begin(ConnectOptions asks = {}) {
    asks.timeout = kPatience;
    return std::async(std::launch::async, [this, asks, peer = listener->address()] {
      return a.qp.connect(peer, asks);
    });
  }
  ConnectionRequest request() {
    std::optional<ConnectionRequest> request = listener->get_request(kPatience);
    REQUIRE(request);
    return std::move(*request);
  }

  Device device_a = open_device();
  Device device_b = open_peer();
  Party a{device_a};
  Party b{device_b};
  std::optional<Listener> listener{std::in_place, device_b, uint16_t{0}};
};

/// What the reject of a request told the peer; nothing where it was not rejected.
std::optional<Bytes> rejected_with(std::future<Bytes>& connecting) {
  try {
    connecting.get();
  } catch (const RejectedError& error) {
    if (error.code() == Errc::rejected) return error.private_data();
  } catch (const Error&) {
  }
  return std::nullopt;
}

/// An address of the device where nobody listens.
Address nobody(const Device& device) { return Listener(device, 0).address(); }

void check_private_data(size_t size) {
  Meeting meeting;
  const Bytes question = contents(size, 1);
  const Bytes answer = contents(size, 2);
  auto connecting = meeting.begin({.private_data = question});
  ConnectionRequest request = meeting.request();
  const auto asked = request.private_data();
  CHECK(Bytes(asked.begin(), asked.end()) == question);
  request.accept(meeting.b.qp, {.private_data = answer});
  CHECK(connecting.get() == answer);
}

}  // namespace

TEST_CASE("A connected queue pair is in rts on both sides, and messages pass both ways") {
  Pair pair;
  CHECK(pair.a.qp.state() == QpState::rts);
  CHECK(pair.b.qp.state() == QpState::rts);
  check_message(pair.a, pair.b, 1);
  check_message(pair.b, pair.a, 2);
}

TEST_CASE("The side that accepted may send first on a peer-to-peer connection") {
  Pair pair;
  check_message(pair.b, pair.a);
}

TEST_CASE("Without private data there are none at the other side") { check_private_data(0); }

TEST_CASE("Private data of 100 bytes pass both ways") { check_private_data(100); }

TEST_CASE("Private data of 251 bytes pass both ways") { check_private_data(251); }

TEST_CASE("Private data of 508 bytes pass both ways") {
  if (!needs(Capability::long_private_data)) return;
  check_private_data(508);
}

TEST_CASE("Private data that are too long are refused, and the queue pair stays in init") {
  Meeting meeting;
  const Bytes excess(kMaxPrivateData + 1);
  CHECK(refusal([&] {
          meeting.a.qp.connect(meeting.listener->address(), {.private_data = excess});
        }) == Errc::invalid_argument);
  CHECK(meeting.a.qp.state() == QpState::init);
  auto connecting = meeting.begin();
  ConnectionRequest request = meeting.request();
  CHECK(refusal([&] { request.accept(meeting.b.qp, {.private_data = excess}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { request.reject(excess); }) == Errc::invalid_argument);
  request.accept(meeting.b.qp);  // it was not answered yet
  connecting.get();
}

TEST_CASE("Both sides tell both addresses of their connection") {
  Meeting meeting;
  auto connecting = meeting.begin();
  ConnectionRequest request = meeting.request();
  const Address from = request.peer_address();
  request.accept(meeting.b.qp);
  connecting.get();
  CHECK(meeting.a.qp.query().peer_address == meeting.listener->address());
  CHECK(meeting.a.qp.address() == from);
  CHECK(meeting.b.qp.query().peer_address == from);
  CHECK(meeting.b.qp.address() == meeting.listener->address());
}

TEST_CASE("A reject throws RejectedError at the peer, with the private data of the reject") {
  Meeting meeting;
  auto connecting = meeting.begin();
  const Bytes reason = text("no room");
  meeting.request().reject(reason);
  CHECK(rejected_with(connecting) == reason);
}

TEST_CASE("A request that is dropped unanswered is rejected") {
  Meeting meeting;
  auto connecting = meeting.begin();
  meeting.request();
  CHECK(rejected_with(connecting) == Bytes());
}

TEST_CASE("A queue pair that was rejected is still in init and may connect again") {
  Meeting meeting;
  auto connecting = meeting.begin();
  meeting.request().reject();
  CHECK(rejected_with(connecting).has_value());
  CHECK(meeting.a.qp.state() == QpState::init);
  connecting = meeting.begin();
  meeting.request().accept(meeting.b.qp);
  connecting.get();
  check_message(meeting.a, meeting.b);
}

TEST_CASE("Connecting to a port where nobody listens fails, and the queue pair stays in init") {
  Meeting meeting;
  CHECK(refusal([&] { meeting.a.qp.connect(nobody(meeting.device_b), {.timeout = kPatience}); }));
  CHECK(meeting.a.qp.state() == QpState::init);
}

TEST_CASE("Requests that wait when their listener goes are not accepted") {
  Meeting meeting;
  auto connecting = meeting.begin();
  meeting.request().reject();
  CHECK(rejected_with(connecting).has_value());
  connecting = meeting.begin({.timeout = kPatience});
  std::this_thread::sleep_for(kMoment);  // most likely it waits in the listener by then
  meeting.listener.reset();
  CHECK_THROWS_AS(connecting.get(), Error);
}

TEST_CASE("A request may be answered after its listener is gone") {
  Meeting meeting;
  auto connecting = meeting.begin();
  ConnectionRequest request = meeting.request();
  meeting.listener.reset();
  request.accept(meeting.b.qp);
  connecting.get();
  check_message(meeting.a, meeting.b);
}

TEST_CASE("A listener on port 0 gets a free port of the device's address, and tells it") {
  const Device device = open_device();
  const Listener one(device, 0);
  const Listener other(device, 0);
  CHECK(one.address().port() != 0);
  CHECK(other.address().port() != one.address().port());
  CHECK(one.address().host() == device.address().host());
}

TEST_CASE("A port that another listener of the device has is refused with address_in_use") {
  const Device device = open_device();
  const Listener first(device, 0);
  CHECK(refusal([&] { Listener(device, first.address().port()); }) == Errc::address_in_use);
}

TEST_CASE("A listener gives no request after its timeout") {
  const Device device = open_device();
  Listener listener(device, 0);
  CHECK_FALSE(listener.get_request(Duration::zero()));
  CHECK_FALSE(listener.get_request(kMoment));
}

TEST_CASE("A request is answered once") {
  Meeting meeting;
  auto connecting = meeting.begin();
  ConnectionRequest request = meeting.request();
  request.accept(meeting.b.qp);
  connecting.get();
  Party second(meeting.device_b);
  CHECK(refusal([&] { request.accept(second.qp); }) == Errc::invalid_state);
  CHECK(refusal([&] { request.reject(); }) == Errc::invalid_state);
  check_message(meeting.a, meeting.b);
}

TEST_CASE("A request is accepted with a queue pair in init of the listener's device alone") {
  Meeting meeting;
  auto connecting = meeting.begin();
  ConnectionRequest request = meeting.request();
  const Device second = open_peer();
  Party stranger(second);
  CHECK(refusal([&] { request.accept(stranger.qp); }) == Errc::invalid_argument);
  Party broken(meeting.device_b);
  broken.qp.modify(QpState::error);
  CHECK(refusal([&] { request.accept(broken.qp); }) == Errc::invalid_state);
  request.accept(meeting.b.qp);
  connecting.get();
  check_message(meeting.a, meeting.b);
}

TEST_CASE("A queue pair that is connected connects to nobody else") {
  Pair pair;
  Listener listener(pair.device_b, 0);
  CHECK(refusal([&] { pair.a.qp.connect(listener.address()); }) == Errc::invalid_state);
  check_message(pair.a, pair.b);
}

TEST_CASE("Several connections at once carry their own messages") {
  constexpr size_t kPeers = 12;
  const Device device = open_device();
  const Device peer = open_peer();
  Listener listener(peer, 0);
  std::deque<Party> clients;
  std::deque<Party> servers;
  std::vector<std::future<Bytes>> connecting;
  for (size_t i = 0; i < kPeers; ++i) {
    Party& client = clients.emplace_back(device, PartyOptions{.memory = 4096});
    servers.emplace_back(peer, PartyOptions{.memory = 4096});
    connecting.push_back(std::async(std::launch::async, [&listener, &client, i] {
      const Bytes number{static_cast<std::byte>(i)};
      return client.qp.connect(listener.address(), {.private_data = number, .timeout = kPatience});
    }));
  }
  for (size_t i = 0; i < kPeers; ++i) {
    std::optional<ConnectionRequest> request = listener.get_request(kPatience);
    REQUIRE(request);
    REQUIRE(request->private_data().size() == 1);
    const auto number = std::to_integer<size_t>(request->private_data()[0]);
    REQUIRE(number < kPeers);
    request->accept(servers[number].qp);
  }
  for (auto& one : connecting) one.get();
  for (size_t i = 0; i < kPeers; ++i) check_message(clients[i], servers[i], i);
}

TEST_CASE("Queue pairs whose peers are named are connected underneath, in any order") {
  if (!needs(Capability::named_peers)) return;
  const Device device_a = open_device();
  const Device device_b = open_peer();
  Party a(device_a), b(device_b);
  const MeetingPoint at_a(device_a, 0), at_b(device_b, 0);
  b.post_receives(1, 100);
  a.qp.await_peer({.address = at_b.address(), .number = b.qp.number(), .timeout = kPatience});
  CHECK(a.qp.state() == QpState::rtr);
  a.qp.modify(QpState::rts);
  a.fill(200, 50, 1);
  REQUIRE_FALSE(a.send(200, 50, 5));
  b.qp.await_peer({.address = at_a.address(), .number = a.qp.number(), .timeout = kPatience});
  b.qp.modify(QpState::rts);
  CHECK(next_good(a.send_cq).wr_id == 5);
  CHECK(next_good(b.recv_cq).byte_count == 50);
  CHECK(b.holds(0, 50, 1));
  check_message(b, a, 2);
}

TEST_CASE("Naming a peer is refused by devices that cannot meet one, and changes nothing") {
  const Device device = open_device();
  if (has(device.query().capabilities, Capability::named_peers)) return;
  Party party(device);
  CHECK(refusal([&] { MeetingPoint(device, 0); }) == Errc::unsupported_operation);
  CHECK(refusal([&] { party.qp.await_peer({.address = device.address().with_port(5)}); }) ==
        Errc::unsupported_operation);
  CHECK(party.qp.state() == QpState::init);
}

}  // namespace diwarp::contract
