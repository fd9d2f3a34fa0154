// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "bridge/datagrams.h"
#include "contract/cm.h"
#include "support/child.h"

/// Objects of hardware devices in a process that forks.
namespace diwarp::bridge_test {

namespace {

/// All that a device has, connected with another one.
struct Objects {
  Objects() {
    join(a->qp, b.qp, devices.b);
    id.emplace(devices.a, *cm_channel);
  }
  void check_exchange(uint64_t key) {
    check_message(*a, b, key);
    check_message(b, *a, key + 1);
    check_datagram(*from, to, key + 2);
  }

  Devices devices;
  std::optional<Party> a{std::in_place, devices.a};
  Party b{devices.b};
  std::optional<Datagrams> from{std::in_place, devices.a, *a};
  Datagrams to{devices.b, b};
  std::optional<CompletionChannel> channel{std::in_place, devices.a};
  std::optional<EventQueue> events{std::in_place, devices.a};
  std::optional<Listener> listener{std::in_place, devices.a, uint16_t{0}};
  std::optional<CmEventChannel> cm_channel{std::in_place};
  std::optional<CmId> id;
};

/// The number of the first call that does not say device_gone, counted from 1; 0: all do.
int first_alive(Objects& of) {
  int step = 0;
  int first = 0;
  const auto expect = [&](bool good) {
    ++step;
    if (!good && first == 0) first = step;
  };
  for (QueuePair* const qp : {&of.a->qp, &of.from->qp}) {
    expect(qp->post_send({}) == Errc::device_gone);
    expect(qp->post_recv({}) == Errc::device_gone);
    expect(says_device_gone([&] { qp->query(); }));
    expect(says_device_gone([&] { qp->modify(QpState::error); }));
  }
  expect(says_device_gone([&] { of.a->recv_cq.wait(Duration::zero()); }));
  expect(says_device_gone([&] { of.a->mr->lkey(); }));
  expect(says_device_gone([&] { MemoryRegion(of.a->pd, of.a->pages.bytes()); }));
  expect(says_device_gone([&] { of.channel->get_event(Duration::zero()); }));
  expect(says_device_gone([&] { of.events->get_event(Duration::zero()); }));
  expect(says_device_gone([&] { of.listener->get_request(Duration::zero()); }));
  expect(says_device_gone([&] { of.id->listen(); }));
  expect(says_device_gone([&] { of.cm_channel->get_event(Duration::zero()); }));
  expect(says_device_gone([&] { of.devices.a.query(); }));
  expect(says_device_gone([&] { CompletionQueue(of.devices.a, 1); }));
  return first;
}

void end_all(Objects& of) {
  of.id.reset();
  of.cm_channel.reset();
  of.listener.reset();
  of.events.reset();
  of.channel.reset();
  of.from.reset();
  of.a.reset();
}

}  // namespace

TEST_CASE("In a forked child all handles of a hardware device are dead, and the parent goes on") {
  const Fresh fresh;
  Objects objects;
  objects.check_exchange(1);
  REQUIRE(eventually(test::others_sleep));
  const int alive = test::in_child([&] {
    const int first = first_alive(objects);
    end_all(objects);
    return first;
  });
  CHECK(alive == 0);
  for (uint64_t key = 10; key < 60; key += 10) objects.check_exchange(key);
  CHECK(objects.devices.a.query().queue_pairs == 2);
  CHECK(objects.devices.a.query().memory_regions == 1);
}

TEST_CASE("A forked child opens a software device of its own and talks to the parent's datagrams") {
  const Fresh fresh;
  Objects objects;
  objects.check_exchange(1);
  objects.b.clear();
  REQUIRE_FALSE(objects.to.qp.post_recv({.wr_id = 5, .sges = objects.b.mr->sge(0, 100)}));
  const Address parent = objects.to.qp.address();
  REQUIRE(eventually(test::others_sleep));
  const int wrong = test::in_child([&] {
    const Device device = Device::open("127.0.0.1", {.progress = Progress::manual});
    Party party(device);
    Datagrams datagrams(device, party);
    party.fill(0, 100, 9);
    if (datagrams.qp.post_send({.sges = party.mr->sge(0, 100), .destination = parent})) return 1;
    return datagrams.send_cq.wait(kPatience) ? 0 : 2;
  });
  CHECK(wrong == 0);
  CHECK(next_good(objects.to.recv_cq).wr_id == 5);
  CHECK(objects.b.holds(0, 100, 9));
  objects.check_exchange(20);
}

}  // namespace diwarp::bridge_test
