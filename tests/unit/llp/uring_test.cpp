// SPDX-License-Identifier: Apache-2.0
#include "llp/uring.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>

#include "backends.h"
#include "bytes.h"
#include "datagrams.h"
#include "raw_socket.h"
#include "seccomp.h"

namespace diwarp::llp {
namespace {

using test::numbered;
using test::pattern;
using test::RawUdp;
using test::receive_texts;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);
using Texts = std::vector<std::string>;

/// A link on a ring of its own.
struct Scene {
  explicit Scene(UringOptions options) {
    options.counters = &counters;
    queue = test::Ring::make(options);
    if (queue) link = UringUdpLink::open(queue, kLoopback4);
  }
  explicit operator bool() const { return link != nullptr; }
  uint64_t count(Counter counter) const { return counters.get(counter); }

  Counters counters;
  std::shared_ptr<UringQueue> queue;
  std::unique_ptr<UringUdpLink> link;
  ReceiveBatch batch{8, 65536, 1024};
};

/// The exit status of a child that runs `body`.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = -1;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a burst that a small submission queue does not hold leaves in parts, in order") {
  Scene scene({.submissions = 1});
  if (!scene) return;
  std::array<RawUdp, 3> peers;
  test::Burst burst;  // of messages for alternating peers, so that none is a train
  const Texts texts = numbered(30);
  for (size_t i = 0; i < texts.size(); ++i) burst.add(peers[i % 3].address(), texts[i]);
  CHECK(scene.link->send(burst.get()).sent == 30);
  for (size_t i = 0; i < texts.size(); ++i) CHECK(peers[i % 3].receive()->bytes == texts[i]);
  CHECK(scene.count(Counter::uring_sq_full) > 0);
}

TEST_CASE("a full completion queue loses nothing, and is counted") {
  Scene scene({.submissions = 1, .completions = 2, .datagram_buffers = 64});
  if (!scene) return;
  RawUdp peer;
  const Texts texts = numbered(60);
  for (const std::string& text : texts) REQUIRE(peer.send(scene.link->local_address(), text));
  CHECK(receive_texts(*scene.link, scene.batch, 60) == texts);
  CHECK(scene.count(Counter::uring_cq_overflow) + scene.count(Counter::uring_rearmed) > 0);
}

TEST_CASE("when no buffer is left what waits is received all the same, in order") {
  const unsigned buffers = GENERATE(1U, 4U);
  Scene scene({.datagram_buffers = buffers});
  if (!scene) return;
  RawUdp peer;
  const Texts texts = numbered(50);
  for (int round = 0; round < 3; ++round) {
    for (const std::string& text : texts) REQUIRE(peer.send(scene.link->local_address(), text));
    CHECK(receive_texts(*scene.link, scene.batch, 50) == texts);
  }
  CHECK(scene.link->receive(scene.batch) == 0);
  CHECK(scene.count(Counter::uring_no_buffers) > 0);
  CHECK(scene.count(Counter::uring_rearmed) > 0);
}

TEST_CASE("a link whose buffers another one's reader holds receives without any") {
  Scene scene({.datagram_buffers = 2});
  if (!scene) return;
  const auto other = UringUdpLink::open(scene.queue, kLoopback4);
  RawUdp peer;
  const Texts two = numbered(2);
  for (const std::string& text : two) REQUIRE(peer.send(other->local_address(), text));
  REQUIRE(receive_texts(*other, scene.batch, 1).size() == 2);  // and the batch keeps them
  ReceiveBatch second(8, 65536, 1024);
  const Texts texts = numbered(20);
  for (const std::string& text : texts) REQUIRE(peer.send(scene.link->local_address(), text));
  CHECK(receive_texts(*scene.link, second, 20) == texts);
  CHECK(test::texts(scene.batch) == two);
}

TEST_CASE("input that a burst's submission takes off the ring is announced") {
  Scene scene({});
  if (!scene) return;
  const auto other = UringUdpLink::open(scene.queue, kLoopback4);
  scene.link->set_key(scene.link.get());
  other->set_key(other.get());
  std::array<RawUdp, 2> peers;
  REQUIRE(peers[0].send(other->local_address(), "came"));
  REQUIRE(test::wait_readable(scene.queue->descriptor()));
  CHECK(scene.queue->silence() == Duration::max());
  test::Burst burst;
  for (const RawUdp& peer : peers) burst.add(peer.address(), "out");
  REQUIRE(scene.link->send(burst.get()).sent == 2);
  CHECK(scene.queue->silence() == Duration::zero());
  CHECK(scene.queue->next_ready() == other.get());
  CHECK(scene.queue->silence() == Duration::max());
}

TEST_CASE("streams that nobody reads do not keep others on their ring from receiving") {
  const auto queue = test::Ring::make({.stream_buffers = 8});
  if (!queue) return;
  auto [first, flooder] = test::tcp_pair();
  auto [second, writer] = test::tcp_pair();
  const auto unread = UringStream::adopt(queue, first.release());
  const auto read = UringStream::adopt(queue, second.release());
  const std::string flood = pattern(200'000);
  REQUIRE(::send(flooder.get(), flood.data(), flood.size(), MSG_DONTWAIT) > 100'000);
  const std::string text = pattern(50'000);
  REQUIRE(::send(writer.get(), text.data(), text.size(), 0) == 50'000);
  std::string received;
  std::vector<std::byte> buffer(3000);
  while (received.size() < text.size() && test::wait_input(*read)) {
    received += test::text_of(Bytes(buffer).first(read->receive(buffer).bytes));
  }
  CHECK(received == text);
}

TEST_CASE("a socket that finds no place among the registered ones works, and is counted") {
  Scene scene({.files = 1});
  if (!scene) return;
  auto second = UringUdpLink::open(scene.queue, kLoopback4);
  const uint64_t unregistered = scene.count(Counter::uring_unregistered);
  CHECK(unregistered >= 1);  // all, on kernels that would keep sockets for a while
  const auto exchange = [&](UringUdpLink& link) {
    std::array<RawUdp, 2> peers;
    test::Burst burst;
    for (const RawUdp& peer : peers) burst.add(peer.address(), "out");
    CHECK(link.send(burst.get()).sent == 2);
    for (RawUdp& peer : peers) CHECK(peer.receive()->bytes == "out");
    REQUIRE(peers[0].send(link.local_address(), "in"));
    CHECK(receive_texts(link, scene.batch, 1) == Texts{"in"});
  };
  exchange(*scene.link);
  exchange(*second);
  scene.link.reset();  // leaves its place
  second = UringUdpLink::open(scene.queue, kLoopback4);
  CHECK(scene.count(Counter::uring_unregistered) <= 2 * unregistered - 1);
  exchange(*second);
}

TEST_CASE("a link goes away with its request in flight, and its port is free at once") {
  Scene scene({});
  if (!scene) return;
  RawUdp peer;
  for (int round = 0; round < 20; ++round) {
    const Address address = scene.link->local_address();
    REQUIRE(peer.send(address, "unread"));
    scene.link.reset();
    scene.link = UringUdpLink::open(scene.queue, address);
    REQUIRE(peer.send(address, "new"));
    REQUIRE(receive_texts(*scene.link, scene.batch, 1) == Texts{"new"});
  }
}

TEST_CASE("a ring may go before what was received from it is forgotten") {
  Scene scene({});
  if (!scene) return;
  RawUdp peer;
  REQUIRE(peer.send(scene.link->local_address(), "kept"));
  REQUIRE(receive_texts(*scene.link, scene.batch, 1) == Texts{"kept"});
  scene.link.reset();
  scene.queue.reset();
  CHECK(test::texts(scene.batch) == Texts{"kept"});
}

TEST_CASE("links and streams made by a thread that has ended receive") {
  Scene scene({});
  if (!scene) return;
  auto [first, writer] = test::tcp_pair();
  std::unique_ptr<UringStream> stream;
  std::thread([&, fd = first.release()] {
    scene.link = UringUdpLink::open(scene.queue, kLoopback4);
    stream = UringStream::adopt(scene.queue, fd);
  }).join();
  RawUdp peer;
  const Texts texts = numbered(10);
  for (const std::string& text : texts) REQUIRE(peer.send(scene.link->local_address(), text));
  CHECK(receive_texts(*scene.link, scene.batch, 10) == texts);
  REQUIRE(::send(writer.get(), "bytes", 5, 0) == 5);
  std::array<std::byte, 8> buffer;
  size_t received = 0;
  while (received < 5 && test::wait_input(*stream)) received += stream->receive(buffer).bytes;
  CHECK(received == 5);
}

TEST_CASE("where io_uring is forbidden a sentence tells why there is no ring") {
  const int status = in_child([] {
    if (!test::forbid_io_uring()) return 2;
    std::string why_not;
    const auto queue = UringQueue::create({}, why_not);
    const bool told = why_not.find("forbids it") != std::string::npos;
    return queue == nullptr && told && why_no_uring() == why_not ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("a memory lock limit of 64 KiB leaves a ring that works, or a sentence why not") {
  const int status = in_child([] {
    const rlimit limit{65536, 65536};
    if (::setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return 2;
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) return 2;
    std::string why_not;
    const auto queue = UringQueue::create({}, why_not);
    if (queue == nullptr) return why_not.size() > 20 ? 0 : 3;
    const auto link = UringUdpLink::open(queue, kLoopback4);
    RawUdp peer;
    ReceiveBatch batch(8, 65536, 1024);
    if (!peer.send(link->local_address(), "limited")) return 4;
    return receive_texts(*link, batch, 1) == Texts{"limited"} ? 0 : 5;
  });
  CHECK(status == 0);
}

}  // namespace
}  // namespace diwarp::llp
