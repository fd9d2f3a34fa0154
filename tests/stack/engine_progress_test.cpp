// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// True if the process may have so many descriptors.
bool allow_descriptors(rlim_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  if (limit.rlim_cur >= wanted) return true;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= wanted;
}

/// Small queue pairs that share their completion queue.
struct Many {
  Many(const Device& device, size_t count) : pd(device), cq(device, 1024) {
    for (size_t i = 0; i < count; ++i) {
      qps.emplace_back(pd, QueuePairInit{.type = QpType::ud,
                                         .send_cq = cq,
                                         .recv_cq = cq,
                                         .capacity = {.max_send_wr = 4, .max_recv_wr = 8}});
      for (uint64_t k = 0; k < 8; ++k) REQUIRE_FALSE(qps.back().post_recv({.wr_id = i}));
    }
  }
  ProtectionDomain pd;
  CompletionQueue cq;
  std::deque<QueuePair> qps;
};

}  // namespace

TEST_CASE("an idle device with a thousand queue pairs uses next to no processor time") {
  if (!allow_descriptors(4096)) {
    std::puts("SKIPPED: this process may not open enough descriptors");
    return;
  }
  Device device = Device::open("127.0.0.1");
  Many many(device, 1000);
  // Some of them have had traffic, so that they were busy-polled once.
  for (size_t i = 0; i < 40; ++i)
    REQUIRE_FALSE(many.qps[i].post_send({.destination = many.qps[i + 40].address()}));
  CHECK(await(many.cq, 80).size() == 80);
  std::this_thread::sleep_for(50ms);
  const ProcessorShare used;
  std::this_thread::sleep_for(1s);
  CHECK(used.of_process() < 0.02);
  REQUIRE_FALSE(many.qps[999].post_send({.destination = many.qps[0].address()}));
  CHECK(await(many.cq, 2).size() == 2);
}

TEST_CASE("an open message on an otherwise idle device costs no processor time either") {
  Device device = Device::open("127.0.0.1");
  Party target(device, {.datagram = {.message_timeout = 300ms}});
  target.post_receives(2, 100);
  RawSocket socket(Address::parse("127.0.0.1"));
  socket.send(target.address(), to_bytes({.msn = 1, .last = false, .payload = pattern(10, 1)}));
  REQUIRE(eventually([&] { return device.counter("rx_datagrams") == 1; }));
  const ProcessorShare used;
  CHECK(eventually([&] { return device.counter("message_timeouts") == 1; }));
  CHECK(used.of_others() < 0.3);
}

TEST_CASE("a message is received while the application computes without a verbs call") {
  Device device = Device::open("127.0.0.1");
  Party target(device);
  target.post_receives(64, 100);
  RawSocket socket(Address::parse("127.0.0.1"));
  const auto datagram = to_bytes({.incarnation = 1, .msn = 1, .payload = pattern(50, 1)});
  std::array<WorkCompletion, 4> batch;
  // The RNIC thread keeps away from an application that polls, and comes back when it stops.
  for (uint32_t round = 0; round < 20; ++round) {
    const Time polling_ends = std::chrono::steady_clock::now() + 2ms;
    while (std::chrono::steady_clock::now() < polling_ends)
      REQUIRE(target.recv_cq.poll(batch) == 0);
    socket.send(target.address(), to_bytes({.msn = round, .payload = pattern(50, 1)}));
    // Reading a counter steps nothing.
    const Time start = std::chrono::steady_clock::now();
    while (device.counter("rx_datagrams") == round &&
           std::chrono::steady_clock::now() < start + 1s) {
    }
    CHECK(device.counter("rx_datagrams") == round + 1);
    CHECK(await(target.recv_cq, 1).size() == 1);
  }
}

TEST_CASE("sends and timers go on while the application computes") {
  Device device = Device::open("127.0.0.1");
  PartyOptions options;
  options.datagram.segment = 1000;
  options.datagram.max_rate = 1'000'000;  // a datagram a millisecond: timers all the way
  Party source(device, options);
  REQUIRE_FALSE(source.send(Address::parse("127.0.0.1:9"), 0, 50'000));
  CHECK(eventually([&] { return device.counter("tx_datagrams") == 52; }));
}

TEST_CASE("a huge message of one queue pair does not hold another's small one up") {
  std::vector<uint16_t> wire;  // the sender of each datagram
  World world;
  Device& device = world.add_device([&](World::Link link) -> World::Link {
    const uint16_t port = link->local_address().port();
    return std::make_unique<llp::ImpairedDatagramLink>(
        std::move(link), llp::Impairment{}, world.clock,
        [&wire, port](ConstBytes, llp::Verdict) { wire.push_back(port); });
  });
  Party huge(device, {.memory = size_t{16} << 20});
  std::deque<Party> small;
  for (int i = 0; i < 3; ++i) small.emplace_back(device);
  const Address nowhere = Address::parse("10.0.0.99:9");
  REQUIRE_FALSE(huge.send(nowhere, 0, size_t{16} << 20));
  const size_t started = wire.size();
  CHECK(started < 1000);  // posting does not send it all
  for (Party& party : small)
    for (int i = 0; i < 100; ++i) REQUIRE_FALSE(party.send(nowhere, 0, 10, 0, SendFlags::none));
  // A burst is at most 64 datagrams: each gets its turn after one burst of each other.
  for (int step = 0; step < 8; ++step) device.progress();
  for (Party& party : small) {
    const auto sent = std::count(wire.begin(), wire.end(), party.address().port());
    CHECK(sent == 100);
  }
  const auto before_last_small =
      std::find_if(wire.rbegin(), wire.rend(),
                   [&](uint16_t port) { return port != huge.address().port(); })
          .base() -
      wire.begin();
  CHECK(before_last_small < 12000);  // the huge one has 11,635 in all
  const auto of_huge =
      std::count(wire.begin(), wire.begin() + before_last_small, huge.address().port());
  CHECK(of_huge <= 64 * 308);
  world.settle();
  CHECK(drain(huge.send_cq).size() == 1);
}

TEST_CASE("queue pairs with much to send take turns, a bounded burst each") {
  std::vector<uint16_t> wire;
  World world;
  Device& device = world.add_device([&](World::Link link) -> World::Link {
    const uint16_t port = link->local_address().port();
    return std::make_unique<llp::ImpairedDatagramLink>(
        std::move(link), llp::Impairment{}, world.clock,
        [&wire, port](ConstBytes, llp::Verdict) { wire.push_back(port); });
  });
  std::deque<Party> parties;
  const Address nowhere = Address::parse("10.0.0.99:9");
  for (int i = 0; i < 4; ++i) parties.emplace_back(device, PartyOptions{.memory = size_t{4} << 20});
  for (Party& party : parties) REQUIRE_FALSE(party.send(nowhere, 0, size_t{4} << 20));
  wire.clear();
  const auto unfinished = [&] { return wire.size() < 4 * 1000; };
  while (unfinished()) device.progress();
  // While all have something left, none is ahead of another by more than one burst.
  std::map<uint16_t, size_t> sent;
  for (size_t i = 0; i < 4 * 1000; ++i) {
    ++sent[wire[i]];
    size_t most = 0;
    size_t least = SIZE_MAX;
    for (Party& party : parties) {
      most = std::max(most, sent[party.address().port()]);
      least = std::min(least, sent[party.address().port()]);
    }
    REQUIRE(most - least <= 88);  // two whole trains
  }
}

TEST_CASE("queue pairs that were quiet for long still receive, however many there are") {
  // More than the engine asks in every step; those that stay empty leave that list.
  const auto progress = GENERATE(Progress::manual, Progress::thread);
  Device device = Device::open("127.0.0.1", {.progress = progress});
  Many many(device, 40);
  RawSocket socket(Address::parse("127.0.0.1"));
  for (uint32_t round = 0; round < 3; ++round) {
    for (const QueuePair& qp : many.qps) socket.send(qp.address(), to_bytes({.msn = round}));
    const auto completions = await(many.cq, 40);
    REQUIRE(completions.size() == 40);
    std::vector<bool> seen(40);
    for (const WorkCompletion& completion : completions) seen[completion.wr_id] = true;
    CHECK(std::all_of(seen.begin(), seen.end(), [](bool one) { return one; }));
    for (int step = 0; step < 10000; ++step) device.progress();
  }
}

TEST_CASE("in manual mode nothing moves but by the application's steps") {
  Device device = Device::open("127.0.0.1", {.progress = Progress::manual});
  Party target(device);
  target.post_receives(2, 100);
  RawSocket socket(Address::parse("127.0.0.1"));
  socket.send(target.address(), to_bytes({.msn = 1}));
  std::this_thread::sleep_for(20ms);
  CHECK(device.counter("rx_datagrams") == 0);
  CHECK(eventually([&] { return device.progress() != 0; }));
  CHECK(device.counter("rx_datagrams") == 1);
}

TEST_CASE("a link without a descriptor wakes the thread that sleeps for it") {
  for (Progress progress : {Progress::thread, Progress::manual}) {
    World world;
    Party target(world.add_real_device(progress));
    target.post_receives(20, 100);
    Party source(world.add_real_device(Progress::manual));
    for (int i = 0; i < 20; ++i) {
      std::thread sender([&] {
        std::this_thread::sleep_for(1ms);
        static_cast<void>(source.send(target.address(), 0, 100));
      });
      const auto completion = target.recv_cq.wait(kPatience);
      sender.join();
      REQUIRE(completion);
    }
  }
}

namespace {

/// The processors that the threads of this name may run on, as /proc writes them.
std::vector<std::string> processors_of(const std::string& name) {
  std::vector<std::string> lists;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string comm;
    std::getline(std::ifstream(task.path() / "comm"), comm);
    std::ifstream status(task.path() / "status");
    for (std::string line; comm == name && std::getline(status, line);)
      if (line.starts_with("Cpus_allowed_list:\t")) lists.push_back(line.substr(19));
  }
  return lists;
}

}  // namespace

TEST_CASE("the RNIC thread can be bound to a processor, and does without where that fails") {
  {
    Device device = Device::open("127.0.0.1", {.cpu = 0});
    CHECK(eventually([] {
      const auto lists = processors_of("diwarp-rnic");
      return lists.size() == 1 && lists[0] == "0";
    }));
  }
  Device device = Device::open("127.0.0.1", {.cpu = 1'000'000});
  Party party(device);
  party.post_receives(1, 100);
  REQUIRE_FALSE(party.send(party.address(), 0, 100));
  CHECK(await(party.recv_cq, 1).size() == 1);
}

TEST_CASE("of more queue pairs with input than are busy-polled each is served in every step") {
  Device device = Device::open("127.0.0.1", {.progress = Progress::manual});
  Device other = Device::open("127.0.0.1", {.progress = Progress::manual});
  Many many(device, 50);
  Many source(other, 1);
  std::array<WorkCompletion, 64> batch;
  const auto deliver = [&](size_t count, int steps) {
    for (size_t i = 0; i < count; ++i) {
      REQUIRE_FALSE(source.qps[0].post_send(
          {.flags = SendFlags::none, .destination = many.qps[i].address()}));
      REQUIRE(eventually([&] { return other.progress() == 0; }));
    }
    size_t came = 0;
    for (int step = 0; step < steps; ++step) {
      device.progress();
      came += many.cq.poll(std::span(batch).subspan(came));
    }
    for (size_t i = 0; i < came; ++i)
      REQUIRE_FALSE(many.qps[batch[i].wr_id].post_recv({.wr_id = batch[i].wr_id}));
    return came;
  };
  REQUIRE(deliver(50, 20) == 50);
  for (int round = 0; round < 10; ++round) CHECK(deliver(50, 1) == 50);
  // It goes, and comes again.
  for (int step = 0; step < 1000; ++step) device.progress();
  for (int round = 0; round < 10; ++round) CHECK(deliver(3, 20) == 3);
  REQUIRE(deliver(50, 20) == 50);
  CHECK(deliver(50, 1) == 50);
}
