// SPDX-License-Identifier: Apache-2.0
#include <cerrno>

#include "datagrams.h"
#include "diwarp/error.h"
#include "llp/impairment/impairment.h"
#include "llp/memory/memory_network.h"
#include "support/bytes.h"
#include "support/catch.h"

namespace diwarp::llp {
namespace {

using test::send_one;
using test::texts;

const Address kGroup = Address::parse("239.1.2.3");

Address host(int number) { return Address::parse("10.0.0." + std::to_string(number) + ":1000"); }

/// Three endpoints on one port.
struct Trio {
  std::shared_ptr<MemoryNetwork> network = MemoryNetwork::create();
  std::unique_ptr<DatagramLink> a = network->open(host(1));
  std::unique_ptr<DatagramLink> b = network->open(host(2));
  std::unique_ptr<DatagramLink> c = network->open(host(3));
};

std::vector<std::string> received(DatagramLink& link) {
  ReceiveBatch batch(4, 2048, 16);
  link.receive(batch);
  return texts(batch);
}

using Texts = std::vector<std::string>;

TEST_CASE("every member of a memory group, the sender included, receives what is sent to it") {
  Trio net;
  const auto at_a = net.a->open_group(kGroup, "");
  const auto at_b = net.b->open_group(kGroup, "any");
  CHECK(at_b->local_address() == kGroup.with_port(1000));
  CHECK(send_one(*net.a, kGroup.with_port(1000), "all").sent == 1);
  ReceiveBatch batch(4, 2048, 16);
  REQUIRE(at_b->receive(batch) == 1);
  CHECK(texts(batch) == Texts{"all"});
  CHECK(batch.datagrams()[0].from == host(1));
  CHECK(batch.datagrams()[0].group);
  CHECK(received(*at_a) == Texts{"all"});
  for (DatagramLink* link : {net.a.get(), net.b.get(), net.c.get()}) CHECK(received(*link).empty());
}

TEST_CASE("a datagram to a memory endpoint itself did not come to a group") {
  Trio net;
  const auto at_b = net.b->open_group(kGroup, "");
  send_one(*net.a, host(2), "you");
  ReceiveBatch batch(4, 2048, 16);
  REQUIRE(net.b->receive(batch) == 1);
  CHECK_FALSE(batch.datagrams()[0].group);
  CHECK(received(*at_b).empty());
}

TEST_CASE("a memory group is told apart by its address and by its port") {
  Trio net;
  const auto at_b = net.b->open_group(kGroup, "");
  send_one(*net.a, kGroup.with_port(1001), "port");
  send_one(*net.a, Address::parse("239.1.2.4:1000"), "address");
  CHECK(received(*at_b).empty());
}

TEST_CASE("a member that left a memory group receives nothing any more, and others do") {
  Trio net;
  auto at_b = net.b->open_group(kGroup, "");
  const auto at_c = net.c->open_group(kGroup, "");
  at_b.reset();
  send_one(*net.a, kGroup.with_port(1000), "left");
  CHECK(received(*at_c) == Texts{"left"});
  at_b = net.b->open_group(kGroup, "");
  CHECK(received(*at_b).empty());
}

TEST_CASE("without loopback a memory endpoint's multicasts reach other hosts only") {
  const auto network = MemoryNetwork::create();
  const auto quiet = network->open(host(1), false);
  const auto neighbour = network->open(host(1).with_port(1001));
  const auto away = network->open(host(2));
  const auto at_self = quiet->open_group(kGroup, "");
  const auto at_away = away->open_group(kGroup, "");
  send_one(*quiet, kGroup.with_port(1000), "x");
  CHECK(received(*at_self).empty());
  CHECK(received(*at_away) == Texts{"x"});
  // Broadcast knows no such choice, and what others send is heard.
  const auto everyone = quiet->open_group(Address::parse("255.255.255.255"), "");
  send_one(*quiet, Address::parse("255.255.255.255:1000"), "y");
  CHECK(received(*everyone) == Texts{"y"});
  send_one(*neighbour, kGroup.with_port(1000), "z");
  CHECK(received(*at_self) == Texts{"z"});
}

TEST_CASE("a memory network has limited and subnet broadcast, and IPv6 groups") {
  Trio net;
  for (const char* text : {"255.255.255.255", "10.0.0.255", "ff02::1", "224.0.0.1"}) {
    CAPTURE(text);
    const Address group = Address::parse(text);
    const auto at_b = net.b->open_group(group, "");
    send_one(*net.a, group.with_port(1000), text);
    CHECK(received(*at_b) == Texts{text});
  }
}

TEST_CASE("a memory address that is no group cannot be joined, and a group's link does not send") {
  Trio net;
  for (const char* text : {"10.0.0.3", "0.0.0.0", "223.255.255.254", "::1", "fe80::ff"}) {
    CAPTURE(text);
    try {
      net.a->open_group(Address::parse(text), "");
      FAIL("it was joined");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::invalid_argument);
    }
  }
  const auto at_b = net.b->open_group(kGroup, "");
  const SendResult result = send_one(*at_b, host(1), "no");
  CHECK(result.status == SendStatus::refused);
  CHECK(result.error == EOPNOTSUPP);
}

TEST_CASE("an impaired link joins the groups of the link inside it") {
  Trio net;
  ImpairedDatagramLink lossy(net.network->open(host(4)), {.drop_if = drop_nth(0)});
  const auto at_lossy = lossy.open_group(kGroup, "");
  send_one(lossy, kGroup.with_port(1000), "lost");
  send_one(lossy, kGroup.with_port(1000), "kept");
  CHECK(received(*at_lossy) == Texts{"kept"});
}

TEST_CASE("a memory group tells when something can be read, until it is left") {
  Trio net;
  size_t told = 0;
  auto at_b = net.b->open_group(kGroup, "");
  at_b->on_ready([&] { ++told; });
  send_one(*net.a, kGroup.with_port(1000), "x");
  CHECK(told == 1);
  at_b.reset();
  send_one(*net.a, kGroup.with_port(1000), "x");
  CHECK(told == 1);
}

TEST_CASE("a full memory group counts what it loses, and the others lose nothing") {
  const auto network = MemoryNetwork::create({.queue_datagrams = 2});
  const auto a = network->open(host(1));
  const auto b = network->open(host(2));
  const auto at_a = a->open_group(kGroup, "");
  const auto at_b = b->open_group(kGroup, "");
  for (const char* text : {"1", "2"}) send_one(*a, kGroup.with_port(1000), text);
  CHECK(received(*at_a) == Texts{"1", "2"});
  send_one(*a, kGroup.with_port(1000), "3");
  CHECK(at_b->overflowed() == 1);
  CHECK(at_a->overflowed() == 0);
  CHECK(received(*at_a) == Texts{"3"});
  CHECK(received(*at_b) == Texts{"1", "2"});
}

}  // namespace
}  // namespace diwarp::llp
