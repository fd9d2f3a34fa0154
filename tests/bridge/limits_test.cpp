// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "bridge/fake.h"
#include "contract/cm.h"

/// What goes beyond the device: refused, or cut where both sides agree on it.
namespace diwarp::bridge_test {

namespace {

using Catch::Matchers::ContainsSubstring;

/// The message that a queue pair of this capacity is refused with.
std::string refusal_of(const Device& device, const QueuePairCapacity& capacity) {
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 1);
  const auto make = [&] { QueuePair(pd, {.send_cq = cq, .recv_cq = cq, .capacity = capacity}); };
  if (refusal(make) != Errc::invalid_argument) return "not as an invalid argument";
  return message_of(make);
}

}  // namespace

TEST_CASE("Queue depths, SGEs and inline data up to the device's are had, and no more") {
  const Fresh fresh;
  const Device device = open_hardware();
  const DeviceAttributes most = device.query();
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 20'000);
  const QueuePair deepest(pd, {.send_cq = cq,
                               .recv_cq = cq,
                               .capacity = {.max_send_wr = most.max_queue_depth,
                                            .max_recv_wr = most.max_queue_depth,
                                            .max_send_sge = most.max_sge,
                                            .max_recv_sge = most.max_sge,
                                            .max_inline_data = most.max_inline_data}});
  CHECK(deepest.query().capacity.max_send_wr >= most.max_queue_depth);
  const uint32_t depth = most.max_queue_depth + 1;
  CHECK_THAT(refusal_of(device, {.max_send_wr = depth}), ContainsSubstring("max_send_wr"));
  CHECK_THAT(refusal_of(device, {.max_recv_wr = depth}), ContainsSubstring("max_recv_wr"));
  CHECK_THAT(refusal_of(device, {.max_send_sge = most.max_sge + 1}),
             ContainsSubstring("max_send_sge"));
  CHECK_THAT(refusal_of(device, {.max_recv_sge = most.max_sge + 1}),
             ContainsSubstring("max_recv_sge"));
  CHECK_THAT(refusal_of(device, {.max_inline_data = most.max_inline_data + 1}),
             ContainsSubstring("max_inline_data"));
}

TEST_CASE("A queue as deep as the device's takes as many requests as it promises") {
  const Fresh fresh;
  const Device device = open_hardware();
  const uint32_t depth = device.query().max_queue_depth;
  Party party(device,
              {.entries = 20'000, .capacity = {.max_send_wr = depth, .max_recv_wr = depth}});
  for (uint32_t i = 0; i < depth; ++i) REQUIRE_FALSE(party.post_recv(i, 0, 1));
  party.qp.modify(QpState::error);
  for (uint32_t i = 0; i < depth; ++i) REQUIRE(next(party.recv_cq).wr_id == i);
}

TEST_CASE("A shared receive queue beyond the device's is refused") {
  const Fresh fresh;
  const Device device = open_hardware();
  const DeviceAttributes most = device.query();
  const ProtectionDomain pd(device);
  const SharedReceiveQueue largest(pd, {.max_wr = most.max_queue_depth, .max_sge = most.max_sge});
  const auto with = [&](const SharedReceiveQueueOptions& options) {
    return refusal([&] { SharedReceiveQueue(pd, options); });
  };
  CHECK(with({.max_wr = most.max_queue_depth + 1}) == Errc::invalid_argument);
  CHECK(with({.max_sge = most.max_sge + 1}) == Errc::invalid_argument);
}

TEST_CASE("A completion queue whose queue pairs have all its room takes no other one") {
  const Fresh fresh;
  const Device device = open_hardware();
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  std::vector<QueuePair> all;
  std::string message;
  while (message.empty() && all.size() < 100)
    message = message_of([&] {
      all.emplace_back(pd, QueuePairInit{.send_cq = cq,
                                         .recv_cq = cq,
                                         .capacity = {.max_send_wr = 2048, .max_recv_wr = 2048}});
    });
  CHECK_THAT(message, ContainsSubstring("completion queue") && ContainsSubstring("larger"));
  REQUIRE_FALSE(all.empty());
  all.pop_back();  // gives its room back
  CHECK_FALSE(refusal([&] {
    QueuePair(
        pd, {.send_cq = cq, .recv_cq = cq, .capacity = {.max_send_wr = 2048, .max_recv_wr = 2048}});
  }));
}

TEST_CASE("Read depths beyond the device's are cut to these, and beyond the protocol's refused") {
  const Fresh fresh;
  const Device device = open_hardware();
  Party a(device);
  Party b(device);
  join(a.qp, b.qp, device, {.ord = 1000, .ird = 1000}, {.ord = 1000, .ird = 1000});
  const QueuePairAttributes agreed = a.qp.query();
  CHECK(agreed.ord > 0);
  CHECK(agreed.ord < 1000);
  CHECK(agreed.ord == b.qp.query().ird);
  CHECK(agreed.ird == b.qp.query().ord);
  Party third(device);
  CHECK(refusal([&] { third.qp.connect(device.address().with_port(9), {.ord = 16383}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { third.qp.connect(device.address().with_port(9), {.ird = 16383}); }) ==
        Errc::invalid_argument);
}

TEST_CASE("More Reads than may be outstanding wait for their turn, and all come") {
  const Fresh fresh;
  const Device device = open_hardware();
  Party a(device);
  Party b(device, {.access = kOpen});
  join(a.qp, b.qp, device, {.ord = 2}, {.ird = 2});
  CHECK(a.qp.query().ord == 2);
  b.fill(0, 6400, 5);
  for (size_t i = 0; i < 64; ++i) REQUIRE_FALSE(a.read(i * 100, 100, b.remote(i * 100), i));
  for (size_t i = 0; i < 64; ++i) CHECK(next_good(a.send_cq).wr_id == i);
  CHECK(a.holds(0, 6400, 5));
}

TEST_CASE("Private data longer than the device's are refused, and as long ones arrive") {
  const Fresh fresh;
  const Device device = open_hardware();
  Party a(device);
  Party b(device);
  const std::vector<std::byte> longest = contents(251, 1);
  const std::vector<std::byte> longer = contents(252, 1);
  const Listener listener(device, 0);
  CHECK(refusal([&] { a.qp.connect(listener.address(), {.private_data = longer}); }) ==
        Errc::invalid_argument);
  join(a.qp, b.qp, device, {.private_data = longest});
  check_message(a, b);
}

TEST_CASE("A port that another listener of the device has is refused with address_in_use") {
  const Fresh fresh;
  const Device device = open_hardware();
  std::optional<Listener> first(std::in_place, device, uint16_t{0});
  const uint16_t port = first->address().port();
  CHECK(refusal([&] { Listener(device, port); }) == Errc::address_in_use);
  const CmEventChannel channel;
  CmId id(device, channel);
  id.bind(device.address().with_port(port));
  CHECK(refusal([&] { id.listen(); }) == Errc::address_in_use);
  first.reset();
  CHECK_FALSE(refusal([&] { Listener(device, port); }));
}

TEST_CASE("What a device decides by itself is refused where it is asked for") {
  const Fresh fresh;
  const Device device = open_hardware();
  Party party(device);
  const Address nowhere = device.address().with_port(9);
  const auto connecting = [&](const ConnectOptions& options) {
    return refusal([&] { party.qp.connect(nowhere, options); });
  };
  CHECK(connecting({.crc = false}) == Errc::unsupported_operation);
  CHECK(connecting({.revision = 1}) == Errc::unsupported_operation);
  CHECK(connecting({.markers = true}) == Errc::unsupported_operation);
  CHECK(connecting({.keep_alive = 10s}) == Errc::unsupported_operation);
  CHECK(refusal([&] { Listener(device, 0, {.max_startups = 1}); }) == Errc::unsupported_operation);
  CHECK(refusal([&] { MemoryRegion::with_stag(party.pd, party.pages.bytes(), 0x100, 0, kOpen); }) ==
        Errc::unsupported_operation);
}

}  // namespace diwarp::bridge_test
