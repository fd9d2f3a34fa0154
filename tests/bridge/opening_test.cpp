// SPDX-License-Identifier: Apache-2.0
#include <infiniband/verbs.h>

#include <algorithm>
#include <vector>

#include "bridge/fake.h"

/// Which devices are opened, and what is said of those that are not.
namespace diwarp::bridge_test {

namespace {

using Catch::Matchers::ContainsSubstring;

const Address kLoopback = Address::parse("127.0.0.1");
/// An address of this host that no hardware device has.
const Address kElsewhere = Address::parse("0.0.0.0");

std::string opening(std::string_view name, const DeviceOptions& options = {}) {
  return message_of([&] { Device::open(name, options); });
}

const DeviceInfo& info_of(const std::vector<DeviceInfo>& all, std::string_view name) {
  const auto found = std::ranges::find(all, name, &DeviceInfo::name);
  REQUIRE(found != all.end());
  return *found;
}

}  // namespace

TEST_CASE("A hardware device is opened by its name, on its first address or another of its own") {
  const Fresh fresh;
  const Device first = Device::open("hw:fake0");
  CHECK(is_hardware(first));
  CHECK(first.address() == kLoopback);
  CHECK(Device::open("hw:fake0?address=127.0.0.1").address() == kLoopback);
  CHECK(Device::open("hw:fake1").address() == Address::parse("::1"));
}

TEST_CASE("A name of no hardware device is refused with the names of those that there are") {
  const Fresh fresh;
  const std::string message = opening("hw:nic9");
  for (const char* const name : {"nic9", "fake0", "fake1", "down0", "ib0", "bare0"})
    CHECK_THAT(message, ContainsSubstring(name));
}

TEST_CASE("A device that is not iWARP, is down, or has no address is refused with that reason") {
  const Fresh fresh;
  CHECK_THAT(opening("hw:ib0"), ContainsSubstring("ib0") && ContainsSubstring("iWARP"));
  CHECK_THAT(opening("hw:down0"), ContainsSubstring("down0") && ContainsSubstring("is down"));
  CHECK_THAT(opening("hw:bare0"), ContainsSubstring("bare0") && ContainsSubstring("no IP address"));
}

TEST_CASE("A file or a module of the kernel's that is missing is told by its name") {
  const Fresh fresh;
  fake().fail("ibv_get_device_list", 0, ENOSYS);
  CHECK_THAT(opening(kHardware), ContainsSubstring("module ib_uverbs"));
  fake().fail("rdma_create_event_channel", 0, ENOENT);
  CHECK_THAT(opening(kHardware),
             ContainsSubstring("rdma_ucm") && ContainsSubstring("/dev/infiniband/rdma_cm"));
  fake().fail("ibv_open_device", 0, EACCES);
  CHECK_THAT(opening(kHardware),
             ContainsSubstring("fake0") && ContainsSubstring("/dev/infiniband"));
  CHECK(opening(kHardware).empty());
}

TEST_CASE("An address that the device has not is refused with those that it has") {
  const Fresh fresh;
  for (const char* const name : {"hw:fake0?address=192.0.2.77", "hw:fake0?address=0.0.0.0"})
    CHECK_THAT(opening(name), ContainsSubstring("fake0") && ContainsSubstring("127.0.0.1"));
}

TEST_CASE("A malformed name of a hardware device is refused with the form that it must have") {
  const Fresh fresh;
  for (const char* const name : {"hw:", "hw:?address=127.0.0.1", "hw:fake0?foo=1", "hw:fake0?"})
    CHECK_THAT(opening(name), ContainsSubstring("hw:NAME?address=ADDRESS"));
  CHECK(refusal([] { Device::open("hw:fake0?address=nonsense"); }) == Errc::invalid_argument);
  CHECK(refusal([] { Device::open("hw:fake0?address="); }) == Errc::invalid_argument);
}

TEST_CASE("An address is opened in software unless hardware is asked for") {
  const Fresh fresh;
  CHECK_FALSE(is_hardware(Device::open(kLoopback)));
  CHECK_FALSE(is_hardware(Device::open(kLoopback, {.hardware = Hardware::never})));
  CHECK(is_hardware(Device::open(kLoopback, {.hardware = Hardware::prefer})));
  CHECK(is_hardware(Device::open("127.0.0.1", {.hardware = Hardware::require})));
}

TEST_CASE("Where no hardware has the address, requiring it fails and preferring it does not") {
  const Fresh fresh;
  const std::string message =
      message_of([] { Device::open(kElsewhere, {.hardware = Hardware::require}); });
  CHECK_THAT(message, ContainsSubstring("0.0.0.0") && ContainsSubstring("fake0 (127.0.0.1)"));
  CHECK_FALSE(is_hardware(Device::open(kElsewhere, {.hardware = Hardware::prefer})));
}

TEST_CASE("Where the hardware is down, requiring it fails with that and preferring it does not") {
  const Fresh fresh;
  fake().raise("fake0", IBV_EVENT_PORT_ERR);
  const std::string message =
      message_of([] { Device::open(kLoopback, {.hardware = Hardware::require}); });
  CHECK_THAT(message, ContainsSubstring("fake0") && ContainsSubstring("is down"));
  CHECK_FALSE(is_hardware(Device::open(kLoopback, {.hardware = Hardware::prefer})));
  fake().raise("fake0", IBV_EVENT_PORT_ACTIVE);
  CHECK(is_hardware(Device::open(kLoopback, {.hardware = Hardware::prefer})));
}

TEST_CASE("The list has the hardware devices that can be opened, and why others cannot") {
  const Fresh fresh;
  const std::vector<DeviceInfo> all = Device::list();
  const DeviceInfo& good = info_of(all, "hw:fake0");
  CHECK(good.hardware);
  CHECK(good.refusal.empty());
  CHECK(good.state == "active");
  CHECK(good.addresses == std::vector{kLoopback});
  CHECK(good.limits.max_queue_depth > 0);
  CHECK_THAT(info_of(all, "hw:ib0").refusal, ContainsSubstring("iWARP"));
  CHECK_THAT(info_of(all, "hw:down0").refusal, ContainsSubstring("down"));
  CHECK_THAT(info_of(all, "hw:bare0").refusal, ContainsSubstring("address"));
  CHECK_FALSE(info_of(all, "127.0.0.1").hardware);
}

TEST_CASE("A port that loses its link and gets it back is told, and the device works on") {
  const Fresh fresh;
  Device device = open_hardware();
  EventQueue events(device);
  fake().raise("fake0", IBV_EVENT_PORT_ERR);
  CHECK(events.get_event(kPatience)->type == AsyncEventType::port_error);
  fake().raise("fake0", IBV_EVENT_PORT_ACTIVE);
  CHECK(events.get_event(kPatience)->type == AsyncEventType::port_active);
  Party a(device);
  Party b(device);
  join(a.qp, b.qp, device);
  check_message(a, b);
}

TEST_CASE("A device whose regions have two keys has no datagrams, and says so") {
  const Fresh fresh;
  fake().deny("two-keys", 1);
  const Device device = open_hardware();
  CHECK_FALSE(has(device.query().capabilities, Capability::datagrams));
  Party a(device);
  Party b(device);
  for (const QpType type : {QpType::ud, QpType::rd}) {
    const std::string message = message_of(
        [&] { QueuePair(a.pd, {.type = type, .send_cq = a.send_cq, .recv_cq = a.recv_cq}); });
    CHECK_THAT(message,
               ContainsSubstring("fake0") && ContainsSubstring(std::string(to_string(type))));
  }
  join(a.qp, b.qp, device);
  check_message(a, b);
  b.fill(0, 1000, 3);
  const MemoryRegion open(b.pd, b.pages.bytes(), kOpen);
  REQUIRE_FALSE(a.read(0, 1000, {open.rkey(), open.base()}));
  next_good(a.send_cq);
  CHECK(a.holds(0, 1000, 3));
  REQUIRE_FALSE(b.post_recv(1, 0, 0));
  REQUIRE_FALSE(
      a.qp.post_send({.opcode = WrOpcode::send_with_invalidate, .invalidate_stag = open.rkey()}));
  next_good(b.recv_cq);
  CHECK_FALSE(open.valid());
  CHECK(b.mr->valid());
}

}  // namespace diwarp::bridge_test
