// SPDX-License-Identifier: Apache-2.0
#include "llp/uring/uring_queue.h"

#include <thread>

#include "datagrams.h"
#include "raw_socket.h"
#include "ring_scene.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/child.h"
#include "support/confined.h"
#include "support/contents.h"
#include "support/held_thread.h"
#include "support/uring.h"

namespace diwarp::llp {
namespace {

using test::numbered;
using test::RawUdp;
using test::receive_texts;
using test::text_pattern;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);
using Texts = std::vector<std::string>;

/// A link on a ring of its own.
struct Scene : test::RingScene {
  explicit Scene(const UringOptions& options = {}) : RingScene(options) {
    if (queue) link = open();
  }

  std::unique_ptr<UringUdpLink> link;
};

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

TEST_CASE("a request that ends for want of buffers is counted once and once more when made again") {
  Scene scene({.datagram_buffers = 2});
  if (!scene) return;
  RawUdp peer;
  const Texts texts = numbered(3);
  for (const std::string& text : texts) REQUIRE(peer.send(scene.link->local_address(), text));
  CHECK(receive_texts(*scene.link, scene.batch, 3) == texts);
  CHECK(scene.count(Counter::uring_no_buffers) == 1);
  CHECK(scene.count(Counter::uring_rearmed) == 0);
  CHECK(scene.link->receive(scene.batch) == 0);
  CHECK(scene.count(Counter::uring_no_buffers) == 1);
  CHECK(scene.count(Counter::uring_rearmed) == 1);
}

TEST_CASE("a link whose buffers another one's reader holds receives without any") {
  Scene scene({.datagram_buffers = 2});
  if (!scene) return;
  const auto other = scene.open();
  RawUdp peer;
  const Texts two = numbered(2);
  for (const std::string& text : two) REQUIRE(peer.send(other->local_address(), text));
  REQUIRE(receive_texts(*other, scene.batch, 1).size() == 2);  // and the batch keeps them
  ReceiveBatch second(8, 65536, 1024);
  const uint64_t before = scene.count(Counter::uring_no_buffers);
  const auto late = scene.open();  // its first request finds no buffer, and none was made before
  CHECK(scene.count(Counter::uring_no_buffers) == before + 1);
  CHECK(scene.count(Counter::uring_rearmed) == 0);
  const Texts texts = numbered(20);
  for (const std::string& text : texts) REQUIRE(peer.send(scene.link->local_address(), text));
  CHECK(receive_texts(*scene.link, second, 20) == texts);
  CHECK(test::texts(scene.batch) == two);
}

TEST_CASE("input that a burst's submission takes off the ring is announced") {
  Scene scene;
  if (!scene) return;
  const auto other = scene.open();
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
  const std::string flood = text_pattern(200'000);
  REQUIRE(::send(flooder.get(), flood.data(), flood.size(), MSG_DONTWAIT) > 100'000);
  const std::string text = text_pattern(50'000);
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
  auto second = scene.open();
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
  second = scene.open();
  CHECK(scene.count(Counter::uring_unregistered) <= 2 * unregistered - 1);
  exchange(*second);
}

TEST_CASE("a link goes away with its request in flight, and its port is free at once") {
  Scene scene;
  if (!scene) return;
  RawUdp peer;
  for (int round = 0; round < 20; ++round) {
    const Address address = scene.link->local_address();
    REQUIRE(peer.send(address, "unread"));
    scene.link.reset();
    scene.link = scene.open(address);
    REQUIRE(peer.send(address, "new"));
    REQUIRE(receive_texts(*scene.link, scene.batch, 1) == Texts{"new"});
  }
}

TEST_CASE("a ring may go before what was received from it is forgotten") {
  Scene scene;
  if (!scene) return;
  RawUdp peer;
  REQUIRE(peer.send(scene.link->local_address(), "kept"));
  REQUIRE(receive_texts(*scene.link, scene.batch, 1) == Texts{"kept"});
  scene.link.reset();
  scene.queue.reset();
  CHECK(test::texts(scene.batch) == Texts{"kept"});
}

TEST_CASE("links and streams made by a thread that has ended receive") {
  Scene scene;
  if (!scene) return;
  auto [first, writer] = test::tcp_pair();
  std::unique_ptr<UringStream> stream;
  std::thread([&, fd = first.release()] {
    scene.link = scene.open();
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

TEST_CASE(
    "bytes that came before a reset are there once a stream has settled, whichever asked for it") {
  const auto queue = test::Ring::make({});
  if (!queue) return;
  auto [first, writer] = test::tcp_pair();
  std::unique_ptr<UringStream> stream;
  test::HeldThread asking([&, fd = first.release()] { stream = UringStream::adopt(queue, fd); });
  REQUIRE(::send(writer.get(), "before", 6, 0) == 6);
  test::reset_connection(std::move(writer));
  std::array<std::byte, 8> buffer;
  REQUIRE(stream->receive(buffer).status == IoStatus::would_block);
  asking.release();
  stream->settle();
  CHECK(stream->receive(buffer).bytes == 6);
  CHECK(stream->receive(buffer).error == ECONNRESET);
}

TEST_CASE("a failure after bytes that several buffers took is told each time") {
  const auto queue = test::Ring::make({.stream_buffers = 1});
  if (!queue) return;
  auto [first, holder] = test::tcp_pair();
  auto [second, writer] = test::tcp_pair();
  const auto unread = UringStream::adopt(queue, first.release());
  REQUIRE(::send(holder.get(), "x", 1, 0) == 1);
  REQUIRE(test::wait_input(*unread));  // has the buffer
  const auto stream = UringStream::adopt(queue, second.release());
  REQUIRE(::send(writer.get(), "abcdef", 6, 0) == 6);
  test::reset_connection(std::move(writer));
  REQUIRE(test::wait_input(*stream));
  std::array<std::byte, 9> bytes;
  const Bytes all(bytes);
  const std::array<Bytes, 3> buffers{all.first(3), all.subspan(3, 3), all.subspan(6)};
  CHECK(stream->receive_into(buffers).bytes == 6);
  for (int i = 0; i < 2; ++i) {
    const IoResult result = stream->receive_into(buffers);
    CHECK(result.status == IoStatus::failed);
    CHECK(result.error == ECONNRESET);
  }
}

TEST_CASE("the new owner of a stream's descriptor reads on after the bytes of its ring") {
  const auto queue = test::Ring::make({});
  if (!queue) return;
  auto [first, writer] = test::tcp_pair();
  const auto stream = UringStream::adopt(queue, first.release());
  REQUIRE(::send(writer.get(), "brought", 7, 0) == 7);
  REQUIRE(test::wait_input(*stream));
  const UniqueFd fd(stream->release());
  REQUIRE(::send(writer.get(), "behind", 6, 0) == 6);
  REQUIRE(test::wait_readable(fd.get()));
  std::array<char, 8> buffer{};
  CHECK(::recv(fd.get(), buffer.data(), buffer.size(), 0) == 6);
  CHECK(std::string(buffer.data()) == "behind");
  std::array<std::byte, 8> none;
  CHECK(stream->receive(none).error == ECONNABORTED);
}

TEST_CASE("where io_uring is forbidden a message tells why there is no ring") {
  const int status = test::in_child([] {
    if (!test::forbid_io_uring()) return 2;
    std::string why_not;
    const auto queue = UringQueue::create({}, why_not);
    const bool told = why_not.find("forbids it") != std::string::npos;
    return queue == nullptr && told && why_no_uring() == why_not ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("where a ring is more than may be locked a message tells which limit it is") {
  const int status = test::in_child([] {
    if (!test::forbid_io_uring(ENOMEM)) return 2;
    std::string why_not;
    const auto queue = UringQueue::create({}, why_not);
    return queue == nullptr && why_not.find("ulimit -l") != std::string::npos ? 0 : 1;
  });
  CHECK(status == 0);
}

TEST_CASE("64 KiB of memory that may be locked are enough for a ring") {
  constexpr int kNoRing = 77;
  const int status = test::in_child([] {
    if (!test::limit_locked_memory()) return 2;
    std::string why_not;
    std::shared_ptr<UringQueue> queue;
    // A kernel that counts a ring's memory as locked may still count one that has just gone.
    for (int tries = 0; tries < 1000; ++tries) {
      queue = UringQueue::create({}, why_not);
      if (queue != nullptr || why_not.find("ulimit -l") == std::string::npos) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (queue == nullptr) return why_not.find("ulimit -l") == std::string::npos ? kNoRing : 3;
    const auto link = UringUdpLink::open(queue, kLoopback4);
    RawUdp peer;
    ReceiveBatch batch(8, 65536, 1024);
    if (!peer.send(link->local_address(), "limited")) return 4;
    return receive_texts(*link, batch, 1) == Texts{"limited"} ? 0 : 5;
  });
  if (status == kNoRing) {
    std::cout << "SKIPPED: no io_uring for a process without privileges\n";
    return;
  }
  CHECK(status == 0);
}

}  // namespace
}  // namespace diwarp::llp
