// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <functional>
#include <thread>

#include "contract/cm.h"
#include "support/child.h"

/// Handles: those that were moved from, those of a forked child, and the order in which they go.
namespace diwarp::contract {

namespace {

/// A connection in the midst of work, whose objects can go in any order.
struct Objects {
  Objects() : device(open_device()), peer(open_peer()) {
    pd.emplace(*device);
    channel.emplace(*device);
    cq.emplace(*device, 64, *channel, 1);
    mr.emplace(*pd, pages.bytes());
    qp.emplace(*pd, QueuePairInit{.send_cq = *cq, .recv_cq = *cq});
    events.emplace(*device);
    other.emplace(peer);
    join(*qp, other->qp, peer);
    other->post_receives(20, 1000);
    cq->arm();
    for (uint64_t i = 0; i < 8; ++i) {
      REQUIRE_FALSE(qp->post_recv({.wr_id = i, .sges = mr->sge(0, 1000)}));
      REQUIRE_FALSE(qp->post_send({.wr_id = i, .sges = mr->sge(i * 1000, 1000)}));
    }
  }

  Pages pages{16 << 10};
  std::optional<Device> device;
  Device peer;
  std::optional<ProtectionDomain> pd;
  std::optional<CompletionChannel> channel;
  std::optional<CompletionQueue> cq;
  std::optional<MemoryRegion> mr;
  std::optional<QueuePair> qp;
  std::optional<EventQueue> events;
  std::optional<Party> other;
};

/// All threads of the process but this one sleep now, as a child that allocates needs it.
bool others_come_to_sleep() {
  for (int i = 0; i < 3000; ++i) {
    if (test::others_sleep()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

}  // namespace

TEST_CASE("A moved handle works, and the one that it was moved from is dead") {
  Pair pair;
  QueuePair qp = std::move(pair.a.qp);
  CompletionQueue cq = std::move(pair.a.recv_cq);
  MemoryRegion mr = std::move(*pair.a.mr);
  const ProtectionDomain pd = std::move(pair.a.pd);
  Device device = std::move(pair.device_a);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested.
  CHECK(pair.a.qp.post_send({}) == Errc::moved_from);
  CHECK(pair.a.qp.post_recv({}) == Errc::moved_from);
  CHECK(refusal([&] { pair.a.qp.state(); }) == Errc::moved_from);
  CHECK(refusal([&] { pair.a.recv_cq.wait(Duration::zero()); }) == Errc::moved_from);
  CHECK(refusal([&] { pair.a.mr->lkey(); }) == Errc::moved_from);
  CHECK(refusal([&] { MemoryRegion(pair.a.pd, pair.a.pages.bytes()); }) == Errc::moved_from);
  CHECK(refusal([&] { pair.device_a.query(); }) == Errc::moved_from);
  CHECK(refusal([&] { CompletionQueue(pair.device_a, 1); }) == Errc::moved_from);
  // NOLINTEND(bugprone-use-after-move)
  REQUIRE_FALSE(qp.post_recv({.wr_id = 3, .sges = mr.sge(0, 100)}));
  REQUIRE_FALSE(pair.b.send(0, 10));
  CHECK(next_good(cq).wr_id == 3);
  CHECK(device.query().queue_pairs == 1);
}

TEST_CASE("A handle that was moved from can be given something to hold again") {
  Pair pair;
  QueuePair qp = std::move(pair.a.qp);
  pair.a.qp = std::move(qp);
  check_message(pair.a, pair.b);
}

TEST_CASE("A device's objects work on when its handle is destroyed") {
  std::optional<Device> device = open_device();
  std::optional<Device> peer = open_peer();
  Party a(*device);
  Party b(*peer);
  join(a.qp, b.qp, *peer);
  device.reset();
  peer.reset();
  check_message(a, b);
  check_message(b, a);
}

TEST_CASE("The device may go first, and the queue pair last") {
  Objects objects;
  objects.device.reset();
  objects.pd.reset();
  objects.mr.reset();
  objects.channel.reset();
  objects.events.reset();
  objects.cq.reset();
  CHECK_FALSE(refusal([&] { objects.qp->state(); }));
  objects.qp.reset();
  CHECK(objects.other->qp.wait_disconnected(kPatience));
}

namespace {

/// A thread that is about to tell an event of a queue pair keeps it for a moment.
bool soon_without_queue_pairs(const Device& device) {
  for (int tries = 0; tries < 10'000; ++tries) {
    if (device.query().queue_pairs == 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace

TEST_CASE("The completion queue may go first, and the device last") {
  Objects objects;
  objects.cq.reset();
  objects.channel.reset();
  objects.qp.reset();
  objects.mr.reset();
  objects.pd.reset();
  objects.events.reset();
  CHECK(soon_without_queue_pairs(*objects.device));
  CHECK(objects.device->query().memory_regions == 0);
  objects.device.reset();
  CHECK(objects.other->qp.wait_disconnected(kPatience));
}

TEST_CASE("Regions may go first, and memory with them, while requests name them") {
  Objects objects;
  {
    const Pages last = std::move(objects.pages);
    objects.mr.reset();
  }
  // Each posted request either was done before, or fails: nothing touches the memory any more.
  objects.other->qp.disconnect({.timeout = kPatience});
  CHECK(objects.qp->wait_disconnected(kPatience));
  objects.qp.reset();
  objects.device.reset();
}

TEST_CASE("The channel may go first, and the completion queue last") {
  Objects objects;
  objects.channel.reset();
  objects.device.reset();
  objects.qp.reset();
  objects.pd.reset();
  objects.mr.reset();
  CHECK(objects.cq->poll({}) == 0);
  objects.cq.reset();
}

TEST_CASE("Ids, channels, queue pairs and devices of the connection manager go in any order") {
  using Step = std::function<void(CmCouple&)>;
  const Step client_id = [](CmCouple& couple) { couple.client.id.reset(); };
  const Step server_id = [](CmCouple& couple) { couple.accepted.reset(); };
  const Step client_qp = [](CmCouple& couple) {
    const QueuePair gone = std::move(couple.client.party.qp);
  };
  const Step server_qp = [](CmCouple& couple) {
    const QueuePair gone = std::move(couple.server.party.qp);
  };
  const Step listener = [](CmCouple& couple) {
    const CmId gone = std::move(couple.server.listener);
  };
  const Step channel = [](CmCouple& couple) {
    const CmEventChannel gone = std::move(couple.client.channel);
  };
  const Step device = [](CmCouple& couple) { const Device gone = std::move(couple.client.device); };
  const std::vector<std::vector<Step>> orders = {
      {channel, device, client_qp, client_id, server_id, server_qp, listener},
      {client_qp, server_qp, client_id, server_id, channel, device, listener},
      {device, listener, server_id, client_id, client_qp, server_qp, channel},
  };
  for (const std::vector<Step>& order : orders) {
    CmCouple couple;
    for (const Step& step : order) step(couple);
  }
}

TEST_CASE("In a forked child every handle is dead, and the parent goes on") {
  Pair pair;
  check_message(pair.a, pair.b);
  REQUIRE(others_come_to_sleep());
  const int wrong = test::in_child([&] {
    int step = 0;
    int first_wrong = 0;
    const auto expect = [&](bool good) {
      ++step;
      if (!good && first_wrong == 0) first_wrong = step;
    };
    expect(pair.a.qp.post_send({}) == Errc::device_gone);
    expect(pair.a.qp.post_recv({}) == Errc::device_gone);
    expect(says_device_gone([&] { pair.a.recv_cq.wait(Duration::zero()); }));
    expect(says_device_gone([&] { pair.a.qp.modify(QpState::error); }));
    expect(says_device_gone([&] { pair.a.qp.query(); }));
    expect(says_device_gone([&] { pair.a.mr->lkey(); }));
    expect(says_device_gone([&] { pair.device_a.query(); }));
    expect(says_device_gone([&] { CompletionQueue(pair.device_a, 1); }));
    return first_wrong;
  });
  CHECK(wrong == 0);
  check_message(pair.a, pair.b, 2);
  check_message(pair.b, pair.a, 3);
}

TEST_CASE(
    "Parent and forked child both write to registered memory, and the parent's bytes travel") {
  Pair pair({.access = kOpen});
  pair.a.fill(0, 1000, 1);
  REQUIRE(others_come_to_sleep());
  const int wrong = test::in_child([&] {
    pair.a.fill(0, 2000, 2);
    return pair.a.holds(0, 2000, 2) ? 0 : 1;
  });
  CHECK(wrong == 0);
  CHECK(pair.a.holds(0, 1000, 1));
  pair.a.fill(0, 1000, 3);
  REQUIRE_FALSE(pair.b.read(2000, 1000, pair.a.remote()));
  next_good(pair.b.send_cq);
  CHECK(pair.b.holds(2000, 1000, 3));
  pair.b.fill(0, 1000, 4);
  REQUIRE_FALSE(pair.b.write(0, 1000, pair.a.remote()));
  REQUIRE_FALSE(pair.b.read(2000, 1000, pair.a.remote()));
  next_good(pair.b.send_cq);
  next_good(pair.b.send_cq);
  CHECK(pair.a.holds(0, 1000, 4));
}

TEST_CASE("A child that only executes another program leaves everything to the parent") {
  Pair pair;
  check_message(pair.a, pair.b);
  const int status = test::in_child([] {
    ::execl("/bin/sh", "sh", "-c", "exit 7", static_cast<char*>(nullptr));
    return 1;
  });
  CHECK(status == 7);
  check_message(pair.a, pair.b, 2);
  check_message(pair.b, pair.a, 3);
}

TEST_CASE("What a forked child destroys stays with the parent, and so does its memory") {
  Pair pair({.access = kOpen});
  std::optional<QueuePair> qp = std::move(pair.a.qp);
  std::optional<Device> device = std::move(pair.device_a);
  REQUIRE_FALSE(qp->post_recv({.wr_id = 1, .sges = pair.a.mr->sge(0, 1000)}));
  REQUIRE(others_come_to_sleep());
  const int wrong = test::in_child([&] {
    qp.reset();
    device.reset();
    pair.a.mr.reset();
    return 0;
  });
  CHECK(wrong == 0);
  // A page that was shared with the child is still the one that the device writes, and reads.
  pair.b.fill(0, 1000, 4);
  REQUIRE_FALSE(pair.b.send(0, 1000));
  CHECK(next_good(pair.a.recv_cq).byte_count == 1000);
  CHECK(pair.a.holds(0, 1000, 4));
  pair.a.fill(0, 1000, 5);
  REQUIRE_FALSE(pair.b.read(2000, 1000, pair.a.remote()));
  next_good(pair.b.send_cq);
  next_good(pair.b.send_cq);
  CHECK(pair.b.holds(2000, 1000, 5));
  CHECK(device->query().queue_pairs == 1);
}

}  // namespace diwarp::contract
