// SPDX-License-Identifier: Apache-2.0
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

std::vector<uint64_t> ids_of(std::span<const WorkCompletion> completions) {
  std::vector<uint64_t> ids;
  for (const WorkCompletion& completion : completions) ids.push_back(completion.wr_id);
  return ids;
}

std::vector<uint64_t> counting(uint64_t count) {
  std::vector<uint64_t> ids(count);
  for (uint64_t i = 0; i < count; ++i) ids[i] = i;
  return ids;
}

}  // namespace

TEST_CASE("a full completion queue holds receives back and loses none, in order") {
  const uint32_t entries = GENERATE(1U, 2U, 7U);
  World world;
  Party source(world.add_device());
  Party target(world.add_device(), {.receive_entries = entries});
  constexpr size_t kCount = 60;
  target.post_receives(kCount, 100);
  for (uint64_t i = 0; i < kCount; ++i) REQUIRE_FALSE(source.send(target.address(), i, 1));
  world.settle();
  // Completions in the queue, and those that wait for room, still occupy their receives.
  CHECK(target.qp.query().posted_receives == kCount - entries);
  const auto receives = drain(target.recv_cq);
  CHECK(ids_of(receives) == counting(kCount));
  CHECK(target.qp.query().posted_receives == 0);
}

TEST_CASE("a full completion queue holds sends back and loses none, in order") {
  const uint32_t entries = GENERATE(1U, 2U, 7U);
  World world;
  Party source(world.add_device(), {.send_entries = entries, .capacity = {.max_send_wr = 32}});
  Party target(world.add_device());
  uint64_t posted = 0;
  while (!source.send(target.address(), 0, 10, posted)) ++posted;
  CHECK(posted == 32 + entries);  // the queue pair takes no more while it cannot report
  const auto sends = drain(source.send_cq);
  CHECK(ids_of(sends) == counting(posted));
  CHECK_FALSE(source.send(target.address(), 0, 10));
}

TEST_CASE("several queue pairs that share a full completion queue all get their turn") {
  World world;
  Device& device = world.add_device();
  const ProtectionDomain pd(device);
  CompletionQueue shared(device, 2);
  std::deque<QueuePair> targets;
  for (int i = 0; i < 4; ++i) {
    targets.emplace_back(pd,
                         QueuePairInit{.type = QpType::ud, .send_cq = shared, .recv_cq = shared});
    for (uint64_t k = 0; k < 10; ++k) REQUIRE_FALSE(targets.back().post_recv({.wr_id = k}));
  }
  Party source(world.add_device());
  for (int k = 0; k < 10; ++k)
    for (QueuePair& target : targets) REQUIRE_FALSE(source.send(target.address(), 0, 0));
  world.settle();
  const auto completions = drain(shared);
  REQUIRE(completions.size() == 40);
  for (QueuePair& target : targets) {
    std::vector<uint64_t> ids;
    for (const WorkCompletion& completion : completions)
      if (completion.qp_number == target.number()) ids.push_back(completion.wr_id);
    CHECK(ids == counting(10));
  }
}

TEST_CASE("a full queue for sends does not hold receives up, nor the other way round") {
  World world;
  Party busy(world.add_device(), {.send_entries = 1, .receive_entries = 1});
  Party other(world.add_device());
  busy.post_receives(4, 100);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(busy.send(other.address(), 0, 10, i));
  REQUIRE_FALSE(other.send(busy.address(), 0, 10));
  world.settle();
  CHECK(drain(busy.recv_cq).size() == 1);
  for (uint64_t i = 0; i < 3; ++i) REQUIRE_FALSE(other.send(busy.address(), 0, 10));
  world.settle();
  CHECK(drain(busy.send_cq).size() == 3);
  CHECK(drain(busy.recv_cq).size() == 3);
}

TEST_CASE("flushed requests that find the completion queue full come out later") {
  World world;
  Party party(world.add_device(), {.receive_entries = 2});
  party.post_receives(10, 100);
  party.qp.modify(QpState::error);
  const auto flushed = drain(party.recv_cq);
  CHECK(ids_of(flushed) == counting(10));
}

TEST_CASE("polling takes no more than asked for") {
  World world;
  Party source(world.add_device());
  Party target(world.add_device());
  target.post_receives(10, 100);
  for (int i = 0; i < 10; ++i) REQUIRE_FALSE(source.send(target.address(), 0, 1));
  world.settle();
  std::array<WorkCompletion, 4> batch;
  std::array<WorkCompletion, 0> none;
  CHECK(target.recv_cq.poll(none) == 0);
  CHECK(target.recv_cq.poll(batch) == 4);
  CHECK(batch[3].wr_id == 3);
  CHECK(target.recv_cq.poll(std::span(batch).first(1)) == 1);
  CHECK(batch[0].wr_id == 4);
  CHECK(target.recv_cq.poll(batch) == 4);
  CHECK(target.recv_cq.poll(batch) == 1);
  CHECK(batch[0].wr_id == 9);
  CHECK(target.recv_cq.poll(batch) == 0);
}

// --- Waiting, with real time: bounds are far from what is expected.

namespace {

constexpr std::array kModes = {Progress::thread, Progress::manual};

}  // namespace

TEST_CASE("polling with a timeout returns empty-handed when nothing comes") {
  for (Progress progress : kModes) {
    Device device = Device::open("127.0.0.1", {.progress = progress});
    Party party(device);
    std::array<WorkCompletion, 4> batch;
    const Time start = std::chrono::steady_clock::now();
    const ProcessorShare used;
    CHECK(party.recv_cq.poll(batch, 0ns) == 0);
    CHECK(party.recv_cq.poll(batch, 1us) == 0);
    CHECK(party.recv_cq.poll(batch, 200ms) == 0);
    CHECK_FALSE(party.recv_cq.wait(1ms));
    const Duration took = std::chrono::steady_clock::now() - start;
    CHECK(took >= 200ms);
    CHECK(used.of_process() < 0.5);  // it sleeps
  }
}

TEST_CASE("polling with a timeout returns as soon as something comes") {
  for (Progress progress : kModes) {
    Device device = Device::open("127.0.0.1", {.progress = progress});
    Party target(device);
    target.post_receives(4, 100);
    std::thread sender([to = target.address()] {
      RawSocket socket(Address::parse("127.0.0.1"));
      std::this_thread::sleep_for(100ms);
      socket.send(to, to_bytes({.msn = 1, .payload = pattern(10, 1)}));
    });
    const auto completion = target.recv_cq.wait(kPatience);
    sender.join();
    REQUIRE(completion);
    CHECK(completion->status == WcStatus::success);
  }
}

TEST_CASE("a wait without limit sleeps until something comes") {
  Device device = Device::open("127.0.0.1");
  Party target(device);
  target.post_receives(4, 100);
  std::thread sender([to = target.address()] {
    RawSocket socket(Address::parse("127.0.0.1"));
    std::this_thread::sleep_for(200ms);
    socket.send(to, to_bytes({.msn = 1, .payload = pattern(10, 1)}));
  });
  const ProcessorShare used;
  const WorkCompletion completion = target.recv_cq.wait();
  CHECK(used.of_process() < 0.5);
  sender.join();
  CHECK(completion.byte_count == 10);
}

TEST_CASE("a blocking wait gets everything out of a completion queue that was full") {
  // The RNIC thread finds the queue full while the only consumer sleeps or has just woken.
  const uint32_t entries = GENERATE(1U, 2U);
  Device device = Device::open("127.0.0.1", {.spin = 0ns});
  Party target(device, {.receive_entries = entries});
  Device other = Device::open("127.0.0.1");
  Party source(other);
  for (int round = 0; round < 100; ++round) {
    target.post_receives(20, 100);
    std::thread sender([&] {
      std::this_thread::sleep_for(100us * (round % 4));
      for (int i = 0; i < 20; ++i)
        static_cast<void>(source.send(target.address(), 0, 10, 0, SendFlags::none));
    });
    std::vector<uint64_t> ids;
    while (ids.size() < 20) {
      const auto completion = target.recv_cq.wait(5s);
      if (!completion) break;
      ids.push_back(completion->wr_id);
    }
    sender.join();
    REQUIRE(ids == counting(20));
  }
}

TEST_CASE("several threads that wait on one completion queue share what comes") {
  constexpr size_t kCount = 2000;
  Device device = Device::open("127.0.0.1", {.spin = 0ns});
  Party target(device, {.receive_entries = 4, .capacity = {.max_recv_wr = kCount}});
  for (uint64_t i = 0; i < kCount; ++i) REQUIRE_FALSE(target.post_recv(i, 0, 100));
  std::vector<std::atomic<int>> seen(kCount);
  std::atomic<size_t> total{0};
  std::vector<std::thread> consumers;
  for (int i = 0; i < 3; ++i) {
    consumers.emplace_back([&] {
      while (total.load() < kCount) {
        const auto completion = target.recv_cq.wait(1s);
        if (!completion) continue;
        ++seen[completion->wr_id];
        ++total;
      }
    });
  }
  Device other = Device::open("127.0.0.1");
  Party source(other);
  for (size_t i = 0; i < kCount; ++i) {
    // No more at a time than any receive buffer holds.
    if (!eventually([&] { return i < total.load() + 100; })) break;
    while (source.send(target.address(), 0, 1, 0, SendFlags::none)) std::this_thread::yield();
  }
  const bool all = eventually([&] { return total.load() >= kCount; });
  if (!all) total = kCount;  // lets them go
  for (std::thread& consumer : consumers) consumer.join();
  REQUIRE(all);
  CHECK(std::all_of(seen.begin(), seen.end(), [](const auto& count) { return count == 1; }));
}
