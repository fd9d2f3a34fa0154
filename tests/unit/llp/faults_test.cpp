// SPDX-License-Identifier: Apache-2.0
#include "llp/impairment/faults.h"

#include <algorithm>
#include <cerrno>
#include <functional>

#include "datagrams.h"
#include "llp/memory/memory_network.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using test::burst_of;
using test::text_pattern;

struct Ends {
  explicit Ends(const LinkFaults& faults)
      : link(network->open(Address::parse("10.0.0.1")), faults),
        peer(network->open(Address::parse("10.0.0.2"))) {}

  SendResult send(const std::vector<std::string>& payloads) {
    return link.send(burst_of(peer->local_address(), payloads).get());
  }
  std::vector<std::string> received() {
    peer->receive(batch);
    return test::texts(batch);
  }

  std::shared_ptr<MemoryNetwork> network = MemoryNetwork::create();
  FaultyDatagramLink link;
  std::unique_ptr<DatagramLink> peer;
  ReceiveBatch batch{8, 65536, 1024};
};

using Texts = std::vector<std::string>;

TEST_CASE("a faulty link blocks every so many-th call, and sends the rest as it is") {
  Ends ends({.block_every = 2});
  CHECK(ends.send({"a", "b"}).sent == 2);
  const SendResult blocked = ends.send({"c"});
  CHECK(blocked.sent == 0);
  CHECK(blocked.status == SendStatus::would_block);
  CHECK(ends.send({"c"}).sent == 1);
  CHECK(ends.received() == Texts{"a", "b", "c"});
  CHECK(ends.link.injected() == 1);
}

TEST_CASE("a faulty link takes a part of a burst, the same part for the same seed") {
  const Texts payloads(20, "x");
  std::vector<size_t> first;
  std::vector<size_t> second;
  Ends one({.seed = 5, .take_at_most = 10});
  Ends two({.seed = 5, .take_at_most = 10});
  for (int i = 0; i < 20; ++i) {
    const SendResult result = one.send(payloads);
    CHECK(result.status == SendStatus::would_block);
    CHECK(result.sent >= 1);
    CHECK(result.sent <= 10);
    first.push_back(result.sent);
    second.push_back(two.send(payloads).sent);
  }
  CHECK(first == second);
  CHECK(std::adjacent_find(first.begin(), first.end(), std::not_equal_to<>()) != first.end());
}

TEST_CASE("a faulty link refuses every so many-th datagram with the error it was given") {
  Ends ends({.refuse_every = 3, .refuse_error = EPERM});
  const SendResult result = ends.send({"a", "b", "c", "d"});
  CHECK(result.sent == 2);
  CHECK(result.status == SendStatus::refused);
  CHECK(result.error == EPERM);
  CHECK(ends.send({"d"}).status == SendStatus::ok);
  CHECK(ends.received() == Texts{"a", "b", "d"});
}

TEST_CASE("a path that narrows refuses what is too long, and is known from then on") {
  Ends ends({.paths = {{.after = 2, .max_datagram = 100}, {.after = 3, .max_datagram = 50}}});
  const Address to = ends.peer->local_address();
  CHECK(ends.link.max_datagram(to) == 1472);
  CHECK(ends.send({text_pattern(1000), text_pattern(1000)}).sent == 2);
  CHECK(ends.link.max_datagram(to) == 1472);
  const SendResult refused = ends.send({text_pattern(90), text_pattern(1000)});
  CHECK(refused.status == SendStatus::refused);
  CHECK(refused.error == EMSGSIZE);
  CHECK(refused.sent == 1);
  CHECK(ends.link.max_datagram(to) == 50);
  CHECK(ends.send({text_pattern(51)}).status == SendStatus::refused);
  CHECK(ends.send({text_pattern(50)}).status == SendStatus::ok);
}

TEST_CASE("a faulty link has nothing to give every so many-th time, and loses nothing by it") {
  const auto network = MemoryNetwork::create();
  FaultyDatagramLink link(network->open(Address::parse("10.0.0.1")), {.idle_every = 2});
  const auto peer = network->open(Address::parse("10.0.0.2"));
  ReceiveBatch batch(8, 65536, 1024);
  REQUIRE(test::send_one(*peer, link.local_address(), "a").sent == 1);
  CHECK(link.receive(batch) == 1);
  REQUIRE(test::send_one(*peer, link.local_address(), "b").sent == 1);
  CHECK(link.receive(batch) == 0);
  CHECK(batch.datagrams().empty());
  CHECK(link.receive(batch) == 1);
  CHECK(test::texts(batch) == Texts{"b"});
}

TEST_CASE("a faulty stream blocks and cuts calls of both directions, and keeps the bytes") {
  auto ends = memory_stream_pair();
  FaultyStream stream(std::move(ends.first), {.block_every = 3, .move_at_most = 5});
  const std::string text = text_pattern(1000);
  std::string came;
  size_t sent = 0;
  std::vector<std::byte> buffer(1000);
  for (int i = 0; i < 5000 && came.size() < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(sent);
    const std::array pieces = {test::bytes_of(rest.substr(0, 3)),
                               test::bytes_of(rest.substr(std::min<size_t>(3, rest.size())))};
    const IoResult out = stream.send(pieces);
    CHECK(out.bytes <= 5);
    sent += out.bytes;
    const IoResult echoed = ends.second->receive(buffer);
    const ConstBytes bytes = ConstBytes(buffer).first(echoed.bytes);
    if (!bytes.empty()) REQUIRE(ends.second->send({&bytes, 1}).bytes == bytes.size());
    const IoResult in = stream.receive(buffer);
    CHECK(in.bytes <= 5);
    came += test::text_of(ConstBytes(buffer).first(in.bytes));
  }
  CHECK(came == text);
  CHECK(stream.injected() > 100);
}

}  // namespace
}  // namespace diwarp::llp
