// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cerrno>

#include "datagrams.h"
#include "diwarp/error.h"
#include "llp/memory/memory_network.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"
#include "unit/base/allocations.h"

namespace diwarp::llp {
namespace {

using test::burst_of;
using test::bytes_of;
using test::send_one;
using test::text_pattern;
using test::texts;

const Address kA = Address::parse("10.0.0.1:1000");
const Address kB = Address::parse("10.0.0.2:1000");

/// A network with two endpoints.
struct Pair {
  explicit Pair(const MemoryOptions& options = {})
      : network(MemoryNetwork::create(options)), a(network->open(kA)), b(network->open(kB)) {}
  std::shared_ptr<MemoryNetwork> network;
  std::unique_ptr<DatagramLink> a;
  std::unique_ptr<DatagramLink> b;
};

TEST_CASE("a memory network delivers bytes, source and order") {
  Pair net;
  const std::array<ConstBytes, 3> pieces = {bytes_of("he"), bytes_of(""), bytes_of("llo")};
  const std::array<OutgoingDatagram, 2> burst = {{{kB, pieces}, {kB, {}}}};
  const SendResult result = net.a->send(burst);
  CHECK(result.sent == 2);
  CHECK(result.status == SendStatus::ok);
  ReceiveBatch batch(4, 2048, 16);
  CHECK(net.b->receive(batch) == 2);
  CHECK(texts(batch) == std::vector<std::string>{"hello", ""});
  CHECK(batch.datagrams()[0].from == kA);
  CHECK(net.b->receive(batch) == 0);
  CHECK(net.a->receive(batch) == 0);
}

TEST_CASE("a memory endpoint can send to itself") {
  Pair net;
  send_one(*net.a, kA, "self");
  ReceiveBatch batch(1, 2048, 1);
  CHECK(net.a->receive(batch) == 1);
}

TEST_CASE("a datagram to an address that nobody opened, or that was closed, is lost") {
  Pair net;
  CHECK(send_one(*net.a, kB.with_port(7), "x").status == SendStatus::ok);
  net.b.reset();
  CHECK(send_one(*net.a, kB, "x").status == SendStatus::ok);
  net.b = net.network->open(kB);
  ReceiveBatch batch(1, 2048, 1);
  CHECK(net.b->receive(batch) == 0);
}

TEST_CASE("an open memory address cannot be opened again until it is closed") {
  Pair net;
  try {
    net.network->open(kA);
    FAIL("open() did not throw");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::address_in_use);
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("10.0.0.1:1000"));
  }
  net.a.reset();
  CHECK(net.network->open(kA)->local_address() == kA);
}

TEST_CASE("port 0 of a memory network takes a free port each time") {
  const auto network = MemoryNetwork::create();
  const auto first = network->open(kA.with_port(0));
  const auto second = network->open(kA.with_port(0));
  CHECK(first->local_address().port() != 0);
  CHECK(first->local_address() != second->local_address());
  CHECK(first->local_address().with_port(0) == kA.with_port(0));
}

TEST_CASE("a full memory queue loses the newest and counts them") {
  MemoryOptions options;
  options.queue_datagrams = 3;
  Pair net(options);
  CHECK(net.a->send(burst_of(kB, {"1", "2", "3", "4", "5"}).get()).sent == 5);
  ReceiveBatch batch(8, 2048, 8);
  CHECK(net.b->receive(batch) == 3);
  CHECK(texts(batch) == std::vector<std::string>{"1", "2", "3"});
  CHECK(net.b->overflowed() == 2);
  CHECK(net.a->overflowed() == 0);
  send_one(*net.a, kB, "6");
  CHECK(net.b->receive(batch) == 1);
}

TEST_CASE("a datagram beyond the memory network's limit is refused where it stands") {
  MemoryOptions options;
  options.max_datagram = 100;
  Pair net(options);
  CHECK(net.a->max_datagram(kB) == 100);
  const auto burst = burst_of(kB, {text_pattern(100), text_pattern(101), "x"});
  const SendResult result = net.a->send(burst.get());
  CHECK(result.sent == 1);
  CHECK(result.status == SendStatus::refused);
  CHECK(result.error == EMSGSIZE);
}

TEST_CASE("a memory link packs datagrams into the slots and leaves what does not fit") {
  Pair net;
  std::vector<std::string> sent;
  for (size_t i = 0; i < 7; ++i) sent.push_back(text_pattern(40, i));
  net.a->send(burst_of(kB, sent).get());
  ReceiveBatch batch(2, 100, 16);  // two datagrams to a slot
  std::vector<std::string> received;
  std::vector<size_t> counts;
  while (const size_t got = net.b->receive(batch)) {
    counts.push_back(got);
    for (std::string& text : texts(batch)) received.push_back(std::move(text));
  }
  CHECK(counts == std::vector<size_t>{4, 3});
  CHECK(received == sent);
}

TEST_CASE("a memory link hands out no more than the batch has room for, and cuts to the slot") {
  Pair net;
  net.a->send(burst_of(kB, {text_pattern(200), "b", "c"}).get());
  ReceiveBatch batch(4, 100, 2);
  CHECK(net.b->receive(batch) == 2);
  CHECK(texts(batch) == std::vector<std::string>{text_pattern(200).substr(0, 100), "b"});
  CHECK(net.b->receive(batch) == 1);
}

TEST_CASE("a memory link tells when something waits, and nothing once it is closed") {
  Pair net;
  int calls = 0;
  net.b->on_ready([&] { ++calls; });
  CHECK(calls == 0);
  send_one(*net.a, kB, "x");
  CHECK(calls == 1);
  net.b->on_ready({});
  send_one(*net.a, kB, "y");
  CHECK(calls == 1);
  net.b->on_ready([&] { ++calls; });
  CHECK(calls == 2);  // for what waits already
  net.b.reset();
  send_one(*net.a, kB, "z");
  CHECK(calls == 2);
}

TEST_CASE("sending and receiving in memory allocates nothing") {
  Pair net;
  const auto burst = burst_of(kB, {"one", "two"});
  ReceiveBatch batch(4, 2048, 16);
  const size_t before = test::allocations();
  net.a->send(burst.get());
  net.b->receive(batch);
  CHECK(test::allocations() == before);
}

}  // namespace
}  // namespace diwarp::llp
