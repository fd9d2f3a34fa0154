// SPDX-License-Identifier: Apache-2.0
#include "unit/base/allocations.h"
#include "stack/support.h"
#include "support/own_loopback.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// Sends messages of `size` bytes one by one and takes the completions; allocates nothing itself.
template <class Step>
bool exchange(Party& source, Party& target, size_t size, int messages, Step&& step) {
  std::array<WorkCompletion, 8> batch;
  for (int i = 0; i < messages; ++i) {
    if (target.post_recv(0, 0, size) || target.post_recv(0, 0, size)) return false;
    // A message of several segments may hold half of the receives, so two are posted for one sent;
    // the second is used by a message of one segment.
    if (source.send(target.address(), 0, size)) return false;
    if (source.send(target.address(), 0, std::min<size_t>(size, 100))) return false;
    size_t sent = 0;
    size_t received = 0;
    const Time deadline = std::chrono::steady_clock::now() + kPatience;
    while (sent < 2 || received < 2) {
      step();
      sent += source.send_cq.poll(batch);
      received += target.recv_cq.poll(batch);
      if (std::chrono::steady_clock::now() > deadline) return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("the data path allocates nothing once it is warm, in memory") {
  World world;
  PartyOptions options{.memory = 1 << 20};
  Party source(world.add_device(), options);
  Party target(world.add_device(), options);
  const size_t size = GENERATE(size_t{0}, size_t{64}, size_t{1442}, size_t{5000}, size_t{400'000});
  CAPTURE(size);
  const auto step = [&] { world.advance(10us); };
  REQUIRE(exchange(source, target, size, 50, step));
  const size_t before = allocations();
  const bool done = exchange(source, target, size, 500, step);
  const size_t made = allocations() - before;
  REQUIRE(done);
  CHECK(made == 0);
}

TEST_CASE("the data path allocates nothing once it is warm, over sockets with RNIC threads") {
  const DeviceOptions device{.local = GENERATE(LocalPath::off, LocalPath::automatic)};
  Device one = Device::open(own_loopback(), device);
  Device two = Device::open(own_loopback(), device);
  PartyOptions options{.memory = 1 << 20};
  options.datagram.max_rate = 500'000'000;  // nothing shall be lost
  options.datagram.message_timeout = 10s;
  Party source(one, options);
  Party target(two, options);
  const size_t size = GENERATE(size_t{64}, size_t{50'000});
  CAPTURE(size);
  if (device.local != LocalPath::off)  // a ring of its own is a part of the warmth
    REQUIRE(eventually([&] {
      return exchange(source, target, size, 10, [] {}) && one.counter("local_peers") != 0;
    }));
  REQUIRE(exchange(source, target, size, 50, [] {}));
  const size_t before = allocations();
  const bool done = exchange(source, target, size, 500, [] {});
  const size_t made = allocations() - before;
  REQUIRE(done);
  CHECK(made == 0);
}

TEST_CASE("segments out of order, duplicates, losses and timeouts allocate nothing once warm") {
  World world;
  Party target(world.add_device());
  const auto link = world.network->open(Address::parse("10.0.1.1"));
  const auto first = to_bytes({.msn = 0, .offset = 0, .last = false, .payload = pattern(100, 1)});
  const auto send = [&](const std::vector<std::byte>& datagram) {
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{target.address(), {&piece, 1}};
    link->send({&outgoing, 1});
    world.settle();
  };
  // Made beforehand, as making them allocates.
  std::deque<std::array<std::vector<std::byte>, 3>> messages;
  for (uint32_t msn = 0; msn < 3000; ++msn) {
    Segment segment{.incarnation = 7, .msn = msn, .payload = pattern(100, msn)};
    auto& message = messages.emplace_back();
    for (uint32_t k = 0; k < 3; ++k) {
      segment.offset = 100 * k;
      segment.last = k == 2;
      message[k] = to_bytes(segment);
    }
  }
  target.post_receives(64, 300);
  std::array<WorkCompletion, 8> batch;
  size_t delivered = 0;
  const auto run = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      send(messages[i][2]);
      send(messages[i][0]);
      send(messages[i][0]);
      if (i % 3 != 0) send(messages[i][1]);
      send(messages[i][1 + i % 2]);
      const size_t count = target.recv_cq.poll(batch);
      delivered += count;
      for (size_t k = 0; k < count; ++k)
        static_cast<void>(target.post_recv(batch[k].wr_id, batch[k].wr_id * 300, 300));
      world.advance(5ms);
    }
  };
  run(0, 2000);  // 1,024 closed MSNs are remembered: from then on nothing grows
  const size_t before = allocations();
  run(2000, 3000);
  const size_t made = allocations() - before;
  CHECK(made == 0);
  CHECK(delivered > 2000);
  CHECK(world.devices[0].counter("message_timeouts") > 100);
}

TEST_CASE("Write-Records that arrive allocate nothing once warm") {
  World world;
  const PartyOptions options{.memory = 1 << 20};
  Party source(world.add_device(), options);
  Party target(world.add_device(), options);
  const MemoryRegion region(target.pd, std::span(target.memory),
                            Access::local_write | Access::remote_write);
  const size_t size = GENERATE(size_t{0}, size_t{64}, size_t{5000}, size_t{400'000});
  CAPTURE(size);
  std::array<WorkCompletion, 8> batch;
  size_t whole = 0;
  const auto run = [&](int messages) {
    const Sge sge = source.mr.sge(0, size);
    for (int i = 0; i < messages; ++i) {
      static_cast<void>(source.qp.post_write_record({.sges = std::span<const Sge>(&sge, 1),
                                                     .destination = target.address(),
                                                     .remote = {region.rkey(), region.base()}}));
      world.advance(10us);
      static_cast<void>(source.send_cq.poll(batch));
      const size_t count = target.recv_cq.poll(batch);
      for (size_t k = 0; k < count; ++k) whole += batch[k].validity.complete() ? 1 : 0;
    }
  };
  run(50);
  const size_t before = allocations();
  run(300);
  CHECK(allocations() == before);
  CHECK(whole == 350);
}

TEST_CASE("Write-Records with gaps, duplicates and timeouts allocate nothing once warm") {
  World world;
  Party target(world.add_device());
  const MemoryRegion region(target.pd, std::span(target.memory),
                            Access::local_write | Access::remote_write);
  const auto link = world.network->open(Address::parse("10.0.1.1"));
  const auto send = [&](const std::vector<std::byte>& datagram) {
    const ConstBytes piece(datagram);
    const llp::OutgoingDatagram outgoing{target.address(), {&piece, 1}};
    link->send({&outgoing, 1});
    world.settle();
  };
  // Made beforehand, as making them allocates: each message has ten segments, every second first.
  std::deque<std::vector<std::byte>> datagrams;
  for (uint32_t msn = 0; msn < 3000; ++msn)
    for (uint32_t k : {1U, 3U, 5U, 7U, 9U, 5U, 0U, 4U, 2U, 6U})
      datagrams.push_back(to_bytes({.incarnation = 7,
                                    .msn = msn,
                                    .offset = 100 * k,
                                    .last = k == 9,
                                    .payload = pattern(100, msn),
                                    .opcode = kWriteRecord,
                                    .stag = region.rkey(),
                                    .tagged_offset = region.base() + 100 * k,
                                    .message_length = 1000}));
  std::array<WorkCompletion, 8> batch;
  size_t gaps = 0;
  const auto run = [&](size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
      for (size_t k = 0; k < 10 - i % 4; ++k) send(datagrams[10 * i + k]);
      world.advance(10ms);
      const size_t count = target.recv_cq.poll(batch);
      for (size_t k = 0; k < count; ++k) gaps += batch[k].validity.range_count() > 1 ? 1 : 0;
    }
  };
  run(0, 2000);
  const size_t before = allocations();
  run(2000, 3000);
  CHECK(allocations() == before);
  CHECK(gaps > 2000);
}

TEST_CASE("events of completion channels allocate nothing") {
  World world;
  Device& device = world.add_device();
  CompletionChannel channel(device);
  CompletionQueue cq(device, 64, channel);
  const ProtectionDomain pd(device);
  QueuePair target(pd, {.type = QpType::ud, .send_cq = cq, .recv_cq = cq});
  Party source(world.add_device());
  std::array<WorkCompletion, 8> batch;
  size_t events = 0;
  const auto run = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      static_cast<void>(target.post_recv({}));
      cq.arm();
      static_cast<void>(source.send(target.address(), 0, 0, 0, SendFlags::none));
      world.settle();
      if (i % 10 == 9)
        while (channel.get_event(0ns)) ++events;
      static_cast<void>(cq.poll(batch));
    }
  };
  run(100);
  const size_t before = allocations();
  run(1000);
  const size_t made = allocations() - before;
  CHECK(made == 0);
  CHECK(events == 1100);
}

TEST_CASE(
    "Reads over datagrams allocate nothing once warm, those that ask for gaps again included") {
  World world;
  const double drop = GENERATE(0.0, 0.01);
  const size_t size = GENERATE(size_t{0}, size_t{30}, size_t{1400}, size_t{300'000});
  CAPTURE(drop, size);
  const auto lossy = [&](World::Link inner) -> World::Link {
    return std::make_unique<llp::ImpairedDatagramLink>(
        std::move(inner), llp::Impairment{.seed = 5, .drop = drop, .drop_if = {}}, world.clock);
  };
  PartyOptions options{.memory = 1 << 20};
  options.datagram.read.retries = 1000;
  Party reader(world.add_device(lossy), options);
  Party target(world.add_device(lossy), options);
  const MemoryRegion source(target.pd, target.memory, Access::remote_read);
  const auto read = [&](int count) {
    std::array<WorkCompletion, 8> batch;
    for (int i = 0; i < count; ++i) {
      const Sge sge = reader.mr.sge(0, size);
      if (reader.qp.post_read({.sges = {sge},
                               .destination = target.address(),
                               .remote = {source.rkey(), source.base()}}))
        return false;
      size_t done = 0;
      for (int step = 0; done == 0 && step < 100'000; ++step) {
        world.advance(1ms);
        done = reader.send_cq.poll(batch);
      }
      if (done != 1 || batch[0].status != WcStatus::success) return false;
    }
    return true;
  };
  REQUIRE(read(300));
  const size_t before = allocations();
  const bool done = read(300);
  const size_t made = allocations() - before;
  REQUIRE(done);
  CHECK(made == 0);
}
