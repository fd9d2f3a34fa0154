// SPDX-License-Identifier: Apache-2.0
#include "contract/pair.h"

/// Devices, and what is made on them.
namespace diwarp::contract {

namespace {

/// The code that a queue pair is refused with when `change` was made to what is good.
template <class Change>
std::error_code refusal_of(const Device& device, Change change) {
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  QueuePairInit init{.send_cq = cq, .recv_cq = cq};
  change(init, device.query());
  return refusal([&] { QueuePair(pd, init); });
}

using Limits = DeviceAttributes;

}  // namespace

TEST_CASE("A device tells its address and its limits") {
  const Device device = open_device();
  const DeviceAttributes attributes = device.query();
  CHECK(attributes.address == device.address());
  CHECK(attributes.max_message > 0);
  CHECK(attributes.max_queue_depth > 0);
  CHECK(attributes.max_sge > 0);
  CHECK(attributes.max_queue_pairs > 0);
  CHECK(attributes.max_completion_queues > 0);
  CHECK(attributes.max_memory_regions > 0);
  CHECK(attributes.max_ord > 0);
  CHECK(attributes.max_ird > 0);
}

TEST_CASE("A completion queue may have as many entries as the device says") {
  const Device device = open_device();
  const uint32_t most = device.query().max_completion_entries;
  REQUIRE(most > 0);
  CHECK(CompletionQueue(device, most).entries() >= most);
}

TEST_CASE("A device tells limits of windows and shared receive queues where it has them") {
  const Device device = open_device();
  const DeviceAttributes attributes = device.query();
  const bool windows = has(attributes.capabilities, Capability::memory_windows);
  CHECK((attributes.max_windows > 0) == windows);
  const bool shared = has(attributes.capabilities, Capability::shared_receive_queues);
  CHECK((attributes.max_shared_receive_queues > 0) == shared);
  if (!shared) return;
  const ProtectionDomain pd(device);
  const SharedReceiveQueueOptions most{.max_wr = attributes.max_shared_receive_depth,
                                       .max_sge = attributes.max_shared_receive_sge};
  CHECK_FALSE(refusal([&] { SharedReceiveQueue(pd, most); }));
  SharedReceiveQueueOptions more = most;
  ++more.max_wr;
  CHECK(refusal([&] { SharedReceiveQueue(pd, more); }) == Errc::invalid_argument);
}

TEST_CASE("Every capability of a device has a name") {
  const Capability own = open_device().query().capabilities;
  CHECK((own | kAllCapabilities) == kAllCapabilities);
}

TEST_CASE("A device counts its open queue pairs and its registered regions") {
  const Device device = open_device();
  {
    const Party one(device);
    const Party other(device);
    CHECK(device.query().queue_pairs == 2);
    CHECK(device.query().memory_regions == 2);
  }
  CHECK(device.query().queue_pairs == 0);
  CHECK(device.query().memory_regions == 0);
}

TEST_CASE("A device's counters have names, and an unknown name counts nothing") {
  const Device device = open_device();
  for (const CounterValue& counter : device.counters()) CHECK_FALSE(counter.name.empty());
  CHECK(device.counter("no such counter") == 0);
}

TEST_CASE("A device cannot be opened by a name that names none") {
  CHECK(refusal([] { Device::open("no such device"); }));
}

TEST_CASE("An RC queue pair is created in init, with at least the depths that were asked for") {
  const Device device = open_device();
  const Party party(device, {.capacity = {.max_send_wr = 33,
                                          .max_recv_wr = 17,
                                          .max_send_sge = 2,
                                          .max_recv_sge = 3,
                                          .max_inline_data = 16}});
  const QueuePairAttributes attributes = party.qp.query();
  CHECK(party.qp.state() == QpState::init);
  CHECK(attributes.state == QpState::init);
  CHECK(attributes.type == QpType::rc);
  CHECK(attributes.capacity.max_send_wr >= 33);
  CHECK(attributes.capacity.max_recv_wr >= 17);
  CHECK(attributes.capacity.max_send_sge >= 2);
  CHECK(attributes.capacity.max_recv_sge >= 3);
  CHECK(attributes.capacity.max_inline_data >= 16);
}

TEST_CASE("A queue pair has the number that was chosen, which no other can have") {
  const Device device = open_device();
  if (!needs(device, Capability::chosen_numbers)) return;
  const ProtectionDomain pd(device);
  const CompletionQueue cq(device, 16);
  const QueuePairInit init{.send_cq = cq, .recv_cq = cq, .number = 0x654321};
  const QueuePair qp(pd, init);
  CHECK(qp.number() == 0x654321);
  CHECK(refusal([&] { QueuePair(pd, init); }) == Errc::address_in_use);
  CHECK(refusal_of(device, [](QueuePairInit& other, const Limits&) { other.number = 9; }) ==
        Errc::invalid_argument);
}

TEST_CASE("Each queue pair has a number of its own, of 24 bits") {
  const Device device = open_device();
  const Party one(device);
  const Party other(device);
  CHECK(one.qp.number() != other.qp.number());
  CHECK(one.qp.number() < 1U << 24);
  CHECK(one.qp.query().number == one.qp.number());
}

TEST_CASE("A queue pair with a depth out of its range is refused with invalid_argument") {
  const Device device = open_device();
  const auto code = [&](auto change) { return refusal_of(device, change); };
  CHECK_FALSE(code([](QueuePairInit&, const Limits&) {}));
  CHECK(code([](QueuePairInit& init, const Limits&) { init.capacity.max_send_wr = 0; }) ==
        Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits&) { init.capacity.max_recv_wr = 0; }) ==
        Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits& limits) {
          init.capacity.max_send_wr = limits.max_queue_depth + 1;
        }) == Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits& limits) {
          init.capacity.max_recv_wr = limits.max_queue_depth + 1;
        }) == Errc::invalid_argument);
}

TEST_CASE("A queue pair with SGEs or inline data out of their range is refused") {
  const Device device = open_device();
  const auto code = [&](auto change) { return refusal_of(device, change); };
  CHECK(code([](QueuePairInit& init, const Limits&) { init.capacity.max_send_sge = 0; }) ==
        Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits&) { init.capacity.max_recv_sge = 0; }) ==
        Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits& limits) {
          init.capacity.max_send_sge = limits.max_sge + 1;
        }) == Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits& limits) {
          init.capacity.max_recv_sge = limits.max_sge + 1;
        }) == Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits& limits) {
          init.capacity.max_inline_data = limits.max_inline_data + 1;
        }) == Errc::invalid_argument);
}

TEST_CASE("A queue pair needs both completion queues") {
  const Device device = open_device();
  const auto code = [&](auto change) { return refusal_of(device, change); };
  CHECK(code([](QueuePairInit& init, const Limits&) { init.send_cq = {}; }) ==
        Errc::invalid_argument);
  CHECK(code([](QueuePairInit& init, const Limits&) { init.recv_cq = {}; }) ==
        Errc::invalid_argument);
}

TEST_CASE("A queue pair that was refused leaves nothing open") {
  const Device device = open_device();
  CHECK(refusal_of(device, [](QueuePairInit& init, const Limits&) { init.send_cq = {}; }));
  CHECK(device.query().queue_pairs == 0);
}

TEST_CASE("A completion queue has the entries that were asked for, 1 to 1048576") {
  const Device device = open_device();
  CHECK(CompletionQueue(device, 1).entries() >= 1);
  CHECK(CompletionQueue(device, 100).entries() >= 100);
  CHECK(refusal([&] { CompletionQueue(device, 0); }) == Errc::invalid_argument);
  CHECK(refusal([&] { CompletionQueue(device, (1U << 20) + 1); }) == Errc::invalid_argument);
}

TEST_CASE("A completion queue of another device is refused with invalid_argument") {
  const Device device = open_device();
  const Device second = open_device();
  const ProtectionDomain pd(device);
  const CompletionQueue own(device, 16);
  const CompletionQueue foreign(second, 16);
  CHECK(refusal([&] { QueuePair(pd, {.send_cq = own, .recv_cq = foreign}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { QueuePair(pd, {.send_cq = foreign, .recv_cq = own}); }) ==
        Errc::invalid_argument);
}

TEST_CASE("A shared receive queue of another device or protection domain is refused") {
  const Device device = open_device();
  if (!needs(device, Capability::shared_receive_queues)) return;
  const Device second = open_device();
  const ProtectionDomain pd(device);
  const ProtectionDomain other_pd(device);
  const ProtectionDomain second_pd(second);
  const CompletionQueue cq(device, 16);
  const SharedReceiveQueue of_other(other_pd);
  const SharedReceiveQueue of_second(second_pd);
  CHECK(refusal([&] { QueuePair(pd, {.send_cq = cq, .recv_cq = cq, .srq = of_other}); }) ==
        Errc::invalid_argument);
  CHECK(refusal([&] { QueuePair(pd, {.send_cq = cq, .recv_cq = cq, .srq = of_second}); }) ==
        Errc::invalid_argument);
}

}  // namespace diwarp::contract
