// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"

/// The longest payload of one datagram by QueuePair::query(), against the one that is sent.
namespace diwarp::test {

namespace {

/// How many datagrams leave the sender's device for a Send of so many bytes. `step` lets time pass.
template <class Step>
uint64_t datagrams_of(Device& device, Party& from, Party& to, size_t bytes, Step&& step) {
  REQUIRE_FALSE(to.post_recv(0, 0, to.memory.size()));
  const uint64_t before = device.counter("tx_datagrams");
  REQUIRE_FALSE(from.send(to.address(), 0, bytes));
  step();
  const auto received = await(to.recv_cq, 1);
  REQUIRE(received.size() == 1);
  REQUIRE(received[0].byte_count == bytes);
  REQUIRE(await(from.send_cq, 1).size() == 1);
  return device.counter("tx_datagrams") - before;
}

}  // namespace

TEST_CASE("a Send of the payload that query() tells is one datagram, and a byte more makes two") {
  const QpType type = GENERATE(QpType::ud, QpType::rd);
  const uint32_t segment = GENERATE(0U, 128U, 1000U);
  CAPTURE(to_string(type), segment);
  const PartyOptions options{.datagram = {.segment = segment}, .type = type};
  World world;
  Device& device = world.add_device();
  Party a(device, options);
  Party b(world.add_device(), options);
  const uint32_t most = a.qp.query().max_datagram_payload;
  REQUIRE(most > 0);
  CHECK(a.qp.query(b.address()).max_datagram_payload == most);
  const auto datagrams = [&](size_t bytes) {
    return datagrams_of(device, a, b, bytes, [&] { world.settle(); });
  };
  datagrams(1);  // over RD the two agree before
  CHECK(datagrams(most) == 1);
  CHECK(datagrams(most + 1) == 2);
}

TEST_CASE("over sockets the payload of one datagram is what the path carries") {
  const uint32_t segment = GENERATE(0U, 1000U);
  CAPTURE(segment);
  Device device = Device::open("127.0.0.1");
  Party a(device, {.datagram = {.segment = segment}});
  Party b(device);
  const uint32_t most = a.qp.query(b.address()).max_datagram_payload;
  REQUIRE(most > 900);
  CHECK(a.qp.query().max_datagram_payload == most);
  CHECK(datagrams_of(device, a, b, most, [] {}) == 1);
  CHECK(datagrams_of(device, a, b, most + 1, [] {}) == 2);
}

TEST_CASE("the payload of one datagram follows the path, the segment and the kind of queue pair") {
  World world({.max_datagram = 1472, .queue_datagrams = 64});
  Device& device = world.add_device();
  const auto payload = [&](const PartyOptions& options) {
    return Party(device, options).qp.query().max_datagram_payload;
  };
  // Prefix and CRC are 12 bytes, the DDP header of a Send 18, the RD header 24.
  CHECK(payload({}) == 1472 - 30);
  CHECK(payload({.type = QpType::rd}) == 1472 - 54);
  CHECK(payload({.datagram = {.segment = 1000}}) == 1000 - 30);
  CHECK(payload({.datagram = {.segment = 9000}}) == 1472 - 30);
  Party party(device);
  CHECK(party.qp.query(Address::parse("10.0.0.9")).max_datagram_payload == 1472 - 30);
  CHECK(refusal([&] { party.qp.query(Address::parse("::1")); }) == Errc::invalid_destination);
  CHECK(RcParty(device).qp.query().max_datagram_payload == 0);
}

}  // namespace diwarp::test
