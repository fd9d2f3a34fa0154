// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <optional>
#include <type_traits>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// One of each, in the middle of work, to be destroyed in any order.
struct Everything {
  static constexpr size_t kObjects = 7;

  explicit Everything(Device opened) : device(std::move(opened)) {
    pd.emplace(*device);
    channel.emplace(*device);
    send_cq.emplace(*device, 4);
    recv_cq.emplace(*device, 1, *channel, 1);
    mr.emplace(*pd, std::span(memory));
    // The first send empties the pacer's bucket, so that the others stay.
    qp.emplace(*pd, QueuePairInit{.type = QpType::ud,
                                  .send_cq = *send_cq,
                                  .recv_cq = *recv_cq,
                                  .datagram = {.max_rate = 1}});
    recv_cq->arm();
    const Sge sge = mr->sge();
    for (int i = 0; i < 4; ++i) {
      REQUIRE_FALSE(qp->post_recv({.sges = {&sge, 1}}));
      REQUIRE_FALSE(qp->post_send({.sges = {&sge, 1}, .destination = qp->address()}));
    }
  }

  void destroy(size_t object) {
    switch (object) {
      case 0:
        return device.reset();
      case 1:
        return pd.reset();
      case 2:
        return channel.reset();
      case 3:
        return send_cq.reset();
      case 4:
        return recv_cq.reset();
      case 5:
        return mr.reset();
      default:
        return qp.reset();
    }
  }

  std::vector<std::byte> memory = std::vector<std::byte>(100);
  std::optional<Device> device;
  std::optional<ProtectionDomain> pd;
  std::optional<CompletionChannel> channel;
  std::optional<CompletionQueue> send_cq;
  std::optional<CompletionQueue> recv_cq;
  std::optional<MemoryRegion> mr;
  std::optional<QueuePair> qp;
};

template <class Handle>
constexpr bool move_only =
    !std::is_copy_constructible_v<Handle> && !std::is_copy_assignable_v<Handle> &&
    std::is_nothrow_move_constructible_v<Handle> && std::is_nothrow_move_assignable_v<Handle>;

static_assert(move_only<Device>);
static_assert(move_only<ProtectionDomain>);
static_assert(move_only<MemoryRegion>);
static_assert(move_only<CompletionQueue>);
static_assert(move_only<CompletionChannel>);
static_assert(move_only<QueuePair>);
static_assert(move_only<Listener>);
static_assert(move_only<ConnectionRequest>);

}  // namespace

TEST_CASE("handles can be destroyed in any order, with work in flight") {
  World world({.queue_datagrams = 16});  // cheap to open, 5,040 times
  world.add_device();
  std::array<size_t, Everything::kObjects> order;
  std::iota(order.begin(), order.end(), size_t{0});
  size_t orders = 0;
  do {
    Everything everything(handle_of<Device>(impl_of(world.devices[0])));
    for (size_t object : order) {
      everything.destroy(object);
      world.devices[0].progress();
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(orders == 5040);
  CHECK(world.devices[0].query().queue_pairs == 0);
  CHECK(world.devices[0].query().memory_regions == 0);
}

TEST_CASE("handles can be destroyed in any order while an RNIC thread serves them") {
  // All rotations of all neighbours' swaps: each object is destroyed at each place.
  for (size_t first = 0; first < Everything::kObjects; ++first) {
    for (size_t swapped = 0; swapped + 1 < Everything::kObjects; ++swapped) {
      std::array<size_t, Everything::kObjects> order;
      for (size_t i = 0; i < order.size(); ++i) order[i] = (first + i) % order.size();
      std::swap(order[swapped], order[swapped + 1]);
      Everything everything(Device::open("127.0.0.1"));
      for (size_t object : order) everything.destroy(object);
    }
  }
}

TEST_CASE("a device lives as long as anything on it") {
  std::optional<Device> device = Device::open("127.0.0.1");
  std::optional<Party> party(std::in_place, *device);
  device.reset();
  party->post_receives(1, 100);
  REQUIRE_FALSE(party->send(party->address(), 200, 100));
  CHECK(await(party->recv_cq, 1).size() == 1);
  Party other = [&] {
    Device second = Device::open("127.0.0.1");
    return Party(second);
  }();
  CHECK(other.qp.state() == QpState::rts);
}

TEST_CASE("a queue pair that was destroyed leaves its completions in the queue") {
  World world;
  Device& device = world.add_device();
  CompletionQueue cq(device, 8);
  const ProtectionDomain pd(device);
  uint32_t number = 0;
  {
    QueuePair qp(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq});
    number = qp.number();
    REQUIRE_FALSE(qp.post_send({.wr_id = 5, .destination = qp.address()}));
  }
  const auto completions = drain(cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].wr_id == 5);
  CHECK(completions[0].qp_number == number);
}

TEST_CASE("a moved handle works, and the one it was moved from is dead") {
  World world;
  auto device = handle_of<Device>(impl_of(world.add_device()));
  ProtectionDomain pd(device);
  CompletionChannel channel(device);
  CompletionQueue cq(device, 8, channel);
  std::vector<std::byte> memory(100);
  MemoryRegion mr(pd, std::span(memory));
  QueuePair qp(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq});

  Device device2 = std::move(device);
  ProtectionDomain pd2 = std::move(pd);
  CompletionChannel channel2 = std::move(channel);
  CompletionQueue cq2 = std::move(cq);
  MemoryRegion mr2 = std::move(mr);
  QueuePair qp2 = std::move(qp);
  REQUIRE_FALSE(qp2.post_recv({}));
  CHECK(mr2.length() == 100);

  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested.
  const Errc dead = Errc::moved_from;
  CHECK(qp.post_send({.destination = qp2.address()}) == dead);
  CHECK(qp.post_recv({}) == dead);
  size_t posted = 1;
  CHECK(qp.post_sends({}, posted) == dead);
  CHECK(qp.post_recvs({}, posted) == dead);
  CHECK(posted == 0);
  CHECK(qp.post_write_record({}) == dead);
  CHECK(qp.post_read({}) == dead);
  CHECK(refusal([&] { qp.modify(QpState::error); }) == dead);
  CHECK(refusal([&] { qp.state(); }) == dead);
  CHECK(refusal([&] { qp.number(); }) == dead);
  CHECK(refusal([&] { qp.address(); }) == dead);
  CHECK(refusal([&] { qp.query(); }) == dead);
  CHECK(refusal([&] { qp.set_max_rate(1); }) == dead);
  CHECK(refusal([&] { qp.connect(Address::parse("10.0.0.1:5")); }) == dead);
  CHECK(refusal([&] { qp.disconnect(); }) == dead);
  CHECK(refusal([&] { qp.wait_disconnected(0ns); }) == dead);
  std::array<WorkCompletion, 1> batch;
  CHECK(refusal([&] { cq.poll(batch); }) == dead);
  CHECK(refusal([&] { cq.poll(batch, 0ns); }) == dead);
  CHECK(refusal([&] { cq.wait(); }) == dead);
  CHECK(refusal([&] { cq.arm(); }) == dead);
  CHECK(refusal([&] { cq.entries(); }) == dead);
  CHECK(refusal([&] { channel.get_event(0ns); }) == dead);
  CHECK(refusal([&] { channel.descriptor(); }) == dead);
  CHECK(refusal([&] { mr.lkey(); }) == dead);
  CHECK(refusal([&] { mr.sge(); }) == dead);
  CHECK(refusal([&] { MemoryRegion(pd, std::span(memory)); }) == dead);
  CHECK(refusal([&] { ProtectionDomain{device}; }) == dead);
  CHECK(refusal([&] { CompletionQueue(device, 1); }) == dead);
  CHECK(refusal([&] { CompletionQueue(device2, 1, channel); }) == dead);
  CHECK(refusal([&] { QueuePair(pd2, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq2}); }) ==
        dead);
  CHECK(refusal([&] { device.progress(); }) == dead);
  CHECK(refusal([&] { device.query(); }) == dead);
  CHECK(refusal([&] { device.counters(); }) == dead);
  // NOLINTEND(bugprone-use-after-move)

  device = std::move(device2);  // and it can be given something to hold again
  CHECK(device.query().queue_pairs == 1);
}
