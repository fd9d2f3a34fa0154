// SPDX-License-Identifier: Apache-2.0
// Real sockets whose system calls fail now and then: nothing is lost or reordered for it, and what
// the link does in a slower way is told.
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "datagrams.h"
#include "llp/udp/focused_udp_link.h"
#include "llp/udp/udp_link.h"
#include "raw_socket.h"
#include "support/catch.h"
#include "support/contents.h"
#include "syscalls.h"

namespace diwarp::llp {
namespace {

using test::Burst;
using test::burst_of;
using test::FaultsForNow;
using test::RawUdp;
using test::text_pattern;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);
using Degradations = std::vector<Counter>;

struct Ends {
  explicit Ends(const UdpOptions& options = {})
      : sender(UdpLink::open(kLoopback4, options)), receiver(UdpLink::open(kLoopback4, options)) {
    sender->on_degradation([this](const Degradation& what) { told.push_back(what.counter); });
    told.clear();  // what else this system lacks
  }
  Address to() const { return receiver->local_address(); }

  std::unique_ptr<UdpLink> sender;
  std::unique_ptr<UdpLink> receiver;
  Degradations told;
};

/// Sends all of it however often the link is full; the number of calls, 0 if it never ends.
size_t send_all(DatagramLink& link, std::span<const OutgoingDatagram> burst) {
  for (size_t calls = 1; calls < 10000; ++calls) {
    const SendResult result = link.send(burst);
    burst = burst.subspan(result.sent);
    if (result.status == SendStatus::refused) return 0;
    if (burst.empty()) return calls;
  }
  return 0;
}

/// Receives until so many came, however often the link has nothing.
std::vector<std::string> receive_all(DatagramLink& link, size_t count) {
  ReceiveBatch batch(8, 65536, 1024);
  std::vector<std::string> result;
  for (int calls = 0; calls < 10000 && result.size() < count; ++calls) {
    link.receive(batch);
    for (std::string& text : test::texts(batch)) result.push_back(std::move(text));
  }
  return result;
}

std::vector<std::string> numbered(size_t count, size_t size) {
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) result.push_back(text_pattern(size, i));
  return result;
}

TEST_CASE("sending calls that fail for want of room now and then delay a burst and lose nothing") {
  const int error = GENERATE(EAGAIN, ENOBUFS, ENOMEM);
  const size_t size = GENERATE(64u, 1400u);
  const bool offload = GENERATE(true, false);
  CAPTURE(error, size, offload);
  Ends ends({.segmentation = offload, .coalescing = offload});
  FaultsForNow faults;
  faults->send_error = error;
  faults->send_every = 2;
  const auto payloads = numbered(64, size);
  for (int round = 0; round < 4; ++round) {
    CHECK(send_all(*ends.sender, burst_of(ends.to(), payloads).get()) > 0);
    CHECK(receive_all(*ends.receiver, 64) == payloads);
  }
  CHECK(faults->injected > 0);
  faults->send_every = 1;
  const SendResult full = ends.sender->send(burst_of(ends.to(), payloads).get());
  CHECK(full.status == SendStatus::would_block);
  CHECK(full.sent == 0);
  CHECK(ends.told.empty());
}

TEST_CASE("datagrams that a queue of the host's drops again and again count as sent in the end") {
  Ends ends({.segmentation = GENERATE(true, false)});
  FaultsForNow faults;
  faults->send_error = ENOBUFS;
  faults->send_every = 1;
  const auto payloads = numbered(3, 700);
  const Burst burst = burst_of(ends.to(), payloads);
  std::span<const OutgoingDatagram> rest = burst.get();
  uint32_t calls = 0;
  for (; !rest.empty() && calls < 4 * kMostQueueRefusals; ++calls) {
    const SendResult result = ends.sender->send(rest);
    REQUIRE(result.status != SendStatus::refused);
    rest = rest.subspan(result.sent);
  }
  CHECK(rest.empty());
  CHECK(calls >= kMostQueueRefusals);
  CHECK(ends.told.empty());
}

TEST_CASE("calls that signals interrupt are made again") {
  Ends ends;
  FaultsForNow faults;
  faults->send_error = faults->receive_error = EINTR;
  faults->send_every = faults->receive_every = 2;
  for (const std::vector<std::string>& payloads : {numbered(64, 700), numbered(8, 20)}) {
    CHECK(ends.sender->send(burst_of(ends.to(), payloads).get()).sent == payloads.size());
    CHECK(receive_all(*ends.receiver, payloads.size()) == payloads);
  }
  CHECK(faults->injected > 0);
}

TEST_CASE("receiving calls that fail now and then delay what waits and lose nothing") {
  const int error = GENERATE(EAGAIN, ENOMEM, ENOBUFS, ECONNREFUSED);
  CAPTURE(error);
  Ends ends({.segmentation = GENERATE(true, false), .coalescing = GENERATE(true, false)});
  FaultsForNow faults;
  faults->receive_error = error;
  faults->receive_every = 2;
  const auto payloads = numbered(200, 300);
  CHECK(send_all(*ends.sender, burst_of(ends.to(), payloads).get()) > 0);
  CHECK(receive_all(*ends.receiver, 200) == payloads);
  CHECK(faults->injected > 0);
}

TEST_CASE("a datagram that the second socket of a link refuses is sent by the first one") {
  const auto link = FocusedUdpLink::open(kLoopback4, {}, 1);
  REQUIRE(link->set_watched(false));
  RawUdp peer;
  for (int i = 0; i < 2; ++i)
    REQUIRE(test::send_one(*link, peer.address(), "number " + std::to_string(i)).sent == 1);
  REQUIRE(link->focused());
  FaultsForNow faults;
  faults->connected_error = EPERM;
  const SendResult result = test::send_one(*link, peer.address(), "number 2");
  CHECK(result.status == SendStatus::ok);
  CHECK(result.sent == 1);
  CHECK(faults->injected > 0);
  for (const std::string& text : test::numbered(3)) {
    const auto message = peer.receive();
    REQUIRE(message);
    CHECK(message->bytes == text);
  }
  ReceiveBatch batch(8, 65536, 1024);
  link->receive(batch);
  CHECK_FALSE(link->focused());
}

TEST_CASE("a system that moves one message a call gets all of a burst, in order") {
  Ends ends({.segmentation = false, .coalescing = false});
  FaultsForNow faults;
  faults->one_message = 1;
  const auto payloads = numbered(100, 500);
  CHECK(ends.sender->send(burst_of(ends.to(), payloads).get()).sent == 100);
  CHECK(receive_all(*ends.receiver, 100) == payloads);
  CHECK(faults->injected > 0);
}

TEST_CASE("segmentation that is refused at run time, with whatever error, ends and is told once") {
  const int error = GENERATE(EIO, EINVAL, EMSGSIZE, EOPNOTSUPP, ENOPROTOOPT);
  CAPTURE(error);
  Ends ends;
  if (!test::has_trains(ends.sender->gso())) return;
  FaultsForNow faults;
  faults->train_error = error;
  const auto payloads = numbered(100, 1000);
  for (int round = 0; round < 3; ++round) {
    const SendResult result = ends.sender->send(burst_of(ends.to(), payloads).get());
    CHECK(result.status == SendStatus::ok);
    CHECK(result.sent == 100);
    CHECK(receive_all(*ends.receiver, 100) == payloads);
  }
  CHECK_FALSE(ends.sender->gso());
  CHECK(ends.told == Degradations{Counter::gso_refused});
  CHECK(faults->injected <= 2);  // the first failure may be an ICMP message's
}

TEST_CASE("segmentation that is refused after an ICMP error and a full buffer ends all the same") {
  RawUdp raw;
  Address closed;
  {
    const RawUdp gone;
    closed = gone.address();
  }
  raw.connect(closed);
  const auto sender = UdpLink::adopt(raw.release());
  if (!test::has_trains(sender->gso())) return;
  const auto receiver = UdpLink::open(kLoopback4);
  CHECK(test::send_one(*sender, closed, "into the void").status == SendStatus::ok);
  FaultsForNow faults;
  faults->train_error = EIO;
  faults->send_error = EAGAIN;
  faults->send_every = 3;
  const auto payloads = numbered(64, 900);
  CHECK(send_all(*sender, burst_of(receiver->local_address(), payloads).get()) > 0);
  CHECK(receive_all(*receiver, 64) == payloads);
  CHECK_FALSE(sender->gso());
}

TEST_CASE("a destination that takes no datagrams at all does not end segmentation") {
  Ends ends;
  if (!test::has_trains(ends.sender->gso())) return;
  const auto payloads = numbered(4, 100);
  const SendResult result = ends.sender->send(burst_of(ends.to().with_port(0), payloads).get());
  CHECK(result.status == SendStatus::refused);
  CHECK(result.error == EINVAL);
  CHECK(ends.sender->gso());
  CHECK(ends.told.empty());
}

TEST_CASE("a kernel without UDP_SEGMENT and UDP_GRO is told of, and served with single datagrams") {
  FaultsForNow faults;
  faults->udp_option_error = ENOPROTOOPT;
  const auto sender = UdpLink::open(kLoopback4);
  const auto receiver = UdpLink::open(kLoopback4);
  Degradations told;
  sender->on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  CHECK(std::count(told.begin(), told.end(), Counter::gso_missing) == 1);
  CHECK(std::count(told.begin(), told.end(), Counter::gro_missing) == 1);
  CHECK_FALSE(sender->gso());
  CHECK_FALSE(receiver->gro());
  const auto payloads = numbered(64, 1200);
  CHECK(sender->send(burst_of(receiver->local_address(), payloads).get()).sent == 64);
  CHECK(receive_all(*receiver, 64) == payloads);
}

TEST_CASE("a link that was told to do without offloads has nothing to tell about them") {
  FaultsForNow faults;
  faults->udp_option_error = ENOPROTOOPT;
  const auto link = UdpLink::open(
      kLoopback4,
      {.receive_buffer = 0, .send_buffer = 0, .segmentation = false, .coalescing = false});
  Degradations told;
  link->on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  CHECK(told.empty());
}

TEST_CASE("buffers that the system cuts to its limits are told of") {
  FaultsForNow faults;
  faults->forced_buffer_error = EPERM;
  const size_t beyond = size_t{1} << 30;
  Degradations told;
  const auto link = UdpLink::open(kLoopback4, {.receive_buffer = beyond,
                                               .send_buffer = beyond,
                                               .segmentation = false,
                                               .coalescing = false});
  link->on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  CHECK(told == Degradations{Counter::rx_buffer_cut, Counter::tx_buffer_cut});
  const auto content = UdpLink::open(
      kLoopback4,
      {.receive_buffer = 65536, .send_buffer = 65536, .segmentation = false, .coalescing = false});
  told.clear();
  content->on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  CHECK(told.empty());
}

TEST_CASE("busy polling is asked of the socket in microseconds, and told of where it is refused") {
  const auto asked = [](int fd) {
    int value = -1;
    socklen_t length = sizeof value;
    ::getsockopt(fd, SOL_SOCKET, SO_BUSY_POLL, &value, &length);
    return value;
  };
  FaultsForNow faults;
  const bool refused = GENERATE(false, true);
  if (refused) faults->busy_poll_error = EPERM;
  const auto plain = UdpLink::open(kLoopback4, {.segmentation = false, .coalescing = false});
  const auto link = UdpLink::open(
      kLoopback4,
      {.segmentation = false, .coalescing = false, .busy_poll = std::chrono::nanoseconds(24'001)});
  const int before = asked(plain->descriptor());
  const bool allowed = asked(link->descriptor()) == 25;
  if (refused) CHECK(asked(link->descriptor()) == before);
  Degradations told;
  plain->on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  CHECK(std::count(told.begin(), told.end(), Counter::busy_poll_refused) == 0);
  link->on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  CHECK(std::count(told.begin(), told.end(), Counter::busy_poll_refused) == (allowed ? 0 : 1));
}

TEST_CASE("with the smallest receive buffer a datagram of any size comes in, one at a time") {
  Ends ends({.receive_buffer = 1,
             .send_buffer = 1,
             .segmentation = GENERATE(true, false),
             .coalescing = GENERATE(true, false)});
  for (const size_t size : {0u, 1u, 1400u, 9000u, 65000u}) {
    CHECK(test::send_one(*ends.sender, ends.to(), text_pattern(size)).status == SendStatus::ok);
    CHECK(receive_all(*ends.receiver, 1) == std::vector{text_pattern(size)});
  }
}

TEST_CASE("a send buffer too small for the fragments of a datagram ends fragmenting, and is told") {
  test::in_network_namespace([] {
    REQUIRE(test::set_mtu("lo", 1500));
    Ends ends({.send_buffer = 1, .fragment = true});
    CHECK(ends.sender->max_datagram(ends.to()) == kMaxDatagram);
    const SendResult result = test::send_one(*ends.sender, ends.to(), text_pattern(60000));
    CHECK(result.status == SendStatus::refused);
    CHECK(result.error == EMSGSIZE);
    CHECK(ends.told == Degradations{Counter::jumbo_refused});
    CHECK(ends.sender->max_datagram(ends.to()) == 1472);
    CHECK(test::send_one(*ends.sender, ends.to(), text_pattern(1472)).status == SendStatus::ok);
    CHECK(receive_all(*ends.receiver, 1) == std::vector{text_pattern(1472)});
  });
}

}  // namespace
}  // namespace diwarp::llp
