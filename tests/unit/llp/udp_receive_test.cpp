// SPDX-License-Identifier: Apache-2.0
#include <netinet/in.h>
#include <netinet/udp.h>

#include "backends.h"
#include "datagrams.h"
#include "llp/udp/udp_link.h"
#include "raw_socket.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using test::RawUdp;
using test::receive_texts;
using test::text_pattern;
using test::texts;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);

UdpOptions plain() {
  UdpOptions options;
  options.segmentation = options.coalescing = false;
  return options;
}

BACKENDS_TEST_CASE("a datagram arrives with its bytes and its source") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  REQUIRE(peer.send(link->local_address(), "\x01two\xff"));
  ReceiveBatch batch(2, 65536, 256);
  REQUIRE(test::wait_input(*link));
  REQUIRE(link->receive(batch) == 1);
  CHECK(texts(batch) == std::vector<std::string>{"\x01two\xff"});
  CHECK(batch.datagrams()[0].from == peer.address());
}

BACKENDS_TEST_CASE("receiving when nothing waits gives nothing, and empties the batch") {
  const auto link = TestType::open(kLoopback4);
  ReceiveBatch batch(2, 65536, 256);
  std::vector<std::byte> old(3);
  batch.add(kLoopback4, old);
  CHECK(link->receive(batch) == 0);
  CHECK(batch.datagrams().empty());
}

BACKENDS_TEST_CASE("an empty datagram is received as one") {
  const auto link = TestType::open(kLoopback4);
  RawUdp peer;
  REQUIRE(peer.send(link->local_address(), ""));
  ReceiveBatch batch(2, 65536, 256);
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{""});
}

BACKENDS_TEST_CASE("a datagram longer than its slot is handed up cut") {
  const auto link = TestType::open(kLoopback4, plain());
  RawUdp peer;
  const std::string payload = text_pattern(300);
  REQUIRE(peer.send(link->local_address(), payload));
  ReceiveBatch batch(1, 100, 1);
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{payload.substr(0, 100)});
}

TEST_CASE("waiting datagrams are received in order and in growing numbers per call") {
  const auto link = UdpLink::open(kLoopback4, plain());
  RawUdp peer;
  for (size_t i = 0; i < 100; ++i) REQUIRE(peer.send(link->local_address(), text_pattern(20, i)));
  ReceiveBatch batch(16, 2048, 64);
  std::vector<size_t> counts;
  size_t total = 0;
  while (const size_t got = link->receive(batch)) {
    counts.push_back(got);
    for (const std::string& text : texts(batch)) CHECK(text == text_pattern(20, total++));
  }
  CHECK(total == 100);
  CHECK(counts == std::vector<size_t>{1, 2, 4, 8, 16, 16, 16, 16, 16, 5});
}

TEST_CASE("a link asks for one datagram again after a call that found fewer than it asked for") {
  const auto link = UdpLink::open(kLoopback4, plain());
  RawUdp peer;
  ReceiveBatch batch(16, 2048, 64);
  for (int i = 0; i < 3; ++i) REQUIRE(peer.send(link->local_address(), "x"));
  CHECK(link->receive(batch) == 1);
  CHECK(link->receive(batch) == 2);
  CHECK(link->receive(batch) == 0);
  for (int i = 0; i < 3; ++i) REQUIRE(peer.send(link->local_address(), "x"));
  CHECK(link->receive(batch) == 1);
}

BACKENDS_TEST_CASE(
    "no call hands out more datagrams than the batch has room for, and none is lost") {
  const auto link = TestType::open(kLoopback4, plain());
  RawUdp peer;
  for (size_t i = 0; i < 20; ++i) REQUIRE(peer.send(link->local_address(), text_pattern(20, i)));
  ReceiveBatch batch(16, 2048, 3);
  size_t total = 0;
  while (const size_t got = link->receive(batch)) {
    CHECK(got <= 3);
    for (const std::string& text : texts(batch)) CHECK(text == text_pattern(20, total++));
  }
  CHECK(total == 20);
}

BACKENDS_TEST_CASE("a train that the kernel coalesced is split into its datagrams") {
  const auto link = TestType::open(kLoopback4);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  const std::string train = text_pattern(340);
  REQUIRE(peer.send(link->local_address(), train, 100));
  ReceiveBatch batch(1, 65536, 128);
  REQUIRE(test::wait_input(*link));
  CHECK(link->receive(batch) == 4);
  CHECK(texts(batch) == std::vector<std::string>{train.substr(0, 100), train.substr(100, 100),
                                                 train.substr(200, 100), train.substr(300)});
  for (const IncomingDatagram& datagram : batch.datagrams()) CHECK(datagram.from == peer.address());
}

BACKENDS_TEST_CASE("full trains that wait are all received") {
  const auto link = TestType::open(kLoopback4);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  std::string all;
  for (size_t i = 0; i < 10; ++i) {
    const std::string train = text_pattern(size_t{44} * 1472, i);
    REQUIRE(peer.send(link->local_address(), train, 1472));
    all += train;
  }
  ReceiveBatch batch(8, 65536, 4 * kMaxTrain);
  std::string received;
  for (const std::string& text : receive_texts(*link, batch, 440)) {
    CHECK(text.size() == 1472);
    received += text;
  }
  CHECK(received == all);
  CHECK(link->overflowed() == 0);
}

BACKENDS_TEST_CASE("no more trains are asked for than the batch can hold") {
  const auto link = TestType::open(kLoopback4);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  for (size_t i = 0; i < 20; ++i) REQUIRE(peer.send(link->local_address(), text_pattern(64, i), 1));
  ReceiveBatch batch(8, 65536, 2 * kMaxTrain);
  CHECK(receive_texts(*link, batch, 20 * 64).size() == 20 * 64);
  CHECK(link->overflowed() == 0);
}

BACKENDS_TEST_CASE("a train longer than the batch has room for loses its tail, which is counted") {
  const auto link = TestType::open(kLoopback4);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  const std::string train = text_pattern(64);
  REQUIRE(peer.send(link->local_address(), train, 1));
  ReceiveBatch batch(4, 65536, 40);
  REQUIRE(test::wait_input(*link));
  CHECK(link->receive(batch) == 40);
  CHECK(texts(batch).back() == train.substr(39, 1));
  CHECK(link->overflowed() == 24);
}

/// Sends and receives datagrams one by one, with looks in between that find none.
void receive_lone(UdpLink& link, RawUdp& peer, size_t count) {
  ReceiveBatch batch(8, 65536, 8 * kMaxTrain);
  for (size_t i = 0; i < count; ++i) {
    REQUIRE(peer.send(link.local_address(), text_pattern(90, i)));
    REQUIRE(receive_texts(link, batch, 1) == std::vector<std::string>{text_pattern(90, i)});
    CHECK(batch.datagrams()[0].from == peer.address());
    CHECK(link.receive(batch) == 0);
  }
}

bool coalesces(const UdpLink& link) {
  return test::option_of(link.descriptor(), IPPROTO_UDP, UDP_GRO) != 0;
}

/// Looks that find nothing, as many as it takes until coalescing may have stopped.
void look_in_vain(UdpLink& link) {
  ReceiveBatch batch(8, 65536, 8 * kMaxTrain);
  for (uint32_t look = 0; look <= Coalescing::kSettlingLooks; ++look)
    CHECK(link.receive(batch) == 0);
}

/// The datagrams of a train that waits.
void receive_train(UdpLink& link, const std::string& train) {
  ReceiveBatch batch(8, 65536, 8 * kMaxTrain);
  CHECK(receive_texts(link, batch, 4) ==
        std::vector<std::string>{train.substr(0, 100), train.substr(100, 100),
                                 train.substr(200, 100), train.substr(300)});
}

TEST_CASE("coalescing stops while datagrams come one by one, and begins again with a burst") {
  const auto link = UdpLink::open(kLoopback4);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  receive_lone(*link, peer, Coalescing::kLone - 1);
  CHECK(coalesces(*link));
  receive_lone(*link, peer, 1);
  CHECK_FALSE(coalesces(*link));
  look_in_vain(*link);
  receive_lone(*link, peer, 300);
  CHECK_FALSE(coalesces(*link));
  // Trains that come meanwhile are split by the kernel.
  for (size_t i = 0; i < 4; ++i) {
    REQUIRE(peer.send(link->local_address(), text_pattern(340, i), 100));
    receive_train(*link, text_pattern(340, i));
  }
  REQUIRE(peer.send(link->local_address(), text_pattern(1000), 100));
  ReceiveBatch batch(8, 65536, 8 * kMaxTrain);
  receive_texts(*link, batch, 10);
  CHECK(coalesces(*link));
  CHECK(link->gro());
}

TEST_CASE("a train that comes around the stop of coalescing is split into its datagrams") {
  const auto link = UdpLink::open(kLoopback4);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  ReceiveBatch batch(8, 65536, 8 * kMaxTrain);
  receive_lone(*link, peer, Coalescing::kLone - 1);
  // It waits after the last lone datagram, when coalescing would stop.
  REQUIRE(peer.send(link->local_address(), "the last one"));
  REQUIRE(peer.send(link->local_address(), text_pattern(340, 1), 100));
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{"the last one"});
  receive_train(*link, text_pattern(340, 1));
  CHECK(coalesces(*link));

  // As if it had come while the kernel was told: it was joined, and the socket has stopped.
  receive_lone(*link, peer, Coalescing::kLone - 1);
  REQUIRE(peer.send(link->local_address(), "the last one"));
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{"the last one"});
  CHECK(link->receive(batch) == 0);
  CHECK_FALSE(coalesces(*link));
  const int on = 1;
  const int off = 0;
  REQUIRE(::setsockopt(link->descriptor(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0);
  REQUIRE(peer.send(link->local_address(), text_pattern(340, 2), 100));
  REQUIRE(::setsockopt(link->descriptor(), IPPROTO_UDP, UDP_GRO, &off, sizeof off) == 0);
  receive_train(*link, text_pattern(340, 2));
  CHECK(coalesces(*link));
}

TEST_CASE("datagrams that a socket had no room for are counted where they come one by one") {
  UdpOptions options;
  options.receive_buffer = 20000;
  const auto link = UdpLink::open(kLoopback4, options);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  receive_lone(*link, peer, Coalescing::kLone);
  look_in_vain(*link);
  receive_lone(*link, peer, 200);
  ReceiveBatch batch(1, 65536, kMaxTrain);
  for (int i = 0; i < 500; ++i) REQUIRE(peer.send(link->local_address(), text_pattern(500)));
  size_t received = 0;
  while (const size_t got = link->receive(batch)) received += got;
  CHECK(received < 500);
  receive_lone(*link, peer, Coalescing::kCountEach);
  CHECK(link->overflowed() == 500 - received);
}

BACKENDS_TEST_CASE("slots too small for a train end coalescing, and nothing is cut") {
  const auto link = TestType::open(kLoopback4);
  if (!test::has_trains(link->gso(), link->gro())) return;
  RawUdp peer;
  ReceiveBatch batch(8, 2048, 64);
  CHECK(link->receive(batch) == 0);
  CHECK_FALSE(link->gro());
  REQUIRE(peer.send(link->local_address(), text_pattern(10 * 1000), 1000));
  const auto received = receive_texts(*link, batch, 10);
  REQUIRE(received.size() == 10);
  for (const std::string& text : received) CHECK(text.size() == 1000);
}

BACKENDS_TEST_CASE("every datagram is either received or counted as overflowed") {
  UdpOptions options = plain();
  options.receive_buffer = 20000;
  const auto link = TestType::open(kLoopback4, options);
  RawUdp peer;
  for (int i = 0; i < 500; ++i) REQUIRE(peer.send(link->local_address(), text_pattern(500)));
  ReceiveBatch batch(16, 2048, 64);
  size_t received = 0;
  while (const size_t got = link->receive(batch)) received += got;
  CHECK(received > 0);
  CHECK(received < 500);
  // The count comes with the next datagram.
  REQUIRE(peer.send(link->local_address(), "last"));
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{"last"});
  CHECK(link->overflowed() == 500 - received);
}

BACKENDS_TEST_CASE("an adopted socket does not count what it lost before") {
  RawUdp raw;
  RawUdp peer;
  const int small = 4000;
  REQUIRE(::setsockopt(raw.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small) == 0);
  const int on = 1;
  REQUIRE(::setsockopt(raw.fd(), SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on) == 0);
  // A datagram that waits then carries the count of its arrival, which is less than that of the
  // adoption.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 100; ++i) REQUIRE(peer.send(raw.address(), text_pattern(500)));
    while (round == 0 && raw.readable()) REQUIRE(raw.receive());
  }
  const Address address = raw.address();
  const auto link = TestType::adopt(raw.release());
  ReceiveBatch batch(16, 65536, 256);
  while (link->receive(batch) > 0) continue;
  REQUIRE(peer.send(address, "new"));
  CHECK(receive_texts(*link, batch, 1) == std::vector<std::string>{"new"});
  CHECK(link->overflowed() == 0);
}

BACKENDS_TEST_CASE("a pending ICMP error does not hide the datagram after it") {
  RawUdp raw;
  auto peer = std::make_unique<RawUdp>();
  const Address peer_address = peer->address();
  raw.connect(peer_address);
  const Address address = raw.address();
  peer.reset();
  const auto link = TestType::adopt(raw.release());
  CHECK(test::send_one(*link, peer_address, "to a closed port").status == SendStatus::ok);
  RawUdp reborn(peer_address);
  REQUIRE(reborn.send(address, "here"));
  ReceiveBatch batch(1, 65536, 128);
  REQUIRE(test::wait_input(*link));
  CHECK(link->receive(batch) == 1);
  CHECK(texts(batch) == std::vector<std::string>{"here"});
}

}  // namespace
}  // namespace diwarp::llp
