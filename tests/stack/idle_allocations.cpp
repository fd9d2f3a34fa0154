// SPDX-License-Identifier: Apache-2.0
#include "stack/rc_support.h"
#include "stack/rd_scene.h"
#include "unit/base/allocations.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr QueuePairCapacity kSmall = {.max_send_wr = 16,
                                      .max_recv_wr = 16,
                                      .max_send_sge = 2,
                                      .max_recv_sge = 2,
                                      .max_inline_data = 64};
constexpr size_t kPairs = 100;

// The memory that one queue pair of kSmall may hold, in bytes, allocations' own headers not
// counted.
constexpr size_t kForRings = 128;  // what could have rings in shared memory, and has none
constexpr size_t kMostOverDatagrams = 4096 + 40 + kForRings;
constexpr size_t kMostOfRd = 4096 + 376 + kForRings;
constexpr size_t kMostOfRc = 8192 - 100;

/// Many queue pairs of one device over real sockets.
class Crew {
 public:
  explicit Crew(QpType type) : type_(type) { pairs_.reserve(kPairs + 1); }

  void add() {
    pairs_.emplace_back(
        pd_, QueuePairInit{.type = type_, .send_cq = cq_, .recv_cq = cq_, .capacity = kSmall});
  }
  std::vector<QueuePair>& pairs() { return pairs_; }
  CompletionQueue& cq() { return cq_; }
  const ProtectionDomain& pd() const { return pd_; }

 private:
  const QpType type_;
  Device device_ = Device::open("127.0.0.1", {.progress = Progress::manual});
  ProtectionDomain pd_{device_};
  CompletionQueue cq_{device_, 4096};
  std::vector<QueuePair> pairs_;
};

}  // namespace

TEST_CASE("an idle queue pair holds few KiB, and with its receives posted no more") {
  const QpType type = GENERATE(QpType::ud, QpType::rd, QpType::rc);
  const size_t most = type == QpType::rc   ? kMostOfRc
                      : type == QpType::rd ? kMostOfRd
                                           : kMostOverDatagrams;
  Crew crew(type);
  std::vector<std::byte> memory(4096);
  const MemoryRegion region(crew.pd(), memory);
  crew.add();  // what the device has once
  const size_t before = allocated_bytes();
  for (size_t i = 0; i < kPairs; ++i) crew.add();
  const size_t idle = (allocated_bytes() - before) / kPairs;
  CAPTURE(to_string(type), idle);
  CHECK(idle <= most);
  CHECK(idle > 1000);  // or nothing was counted

  const std::array<Sge, 2> sges{region.sge(0, 2048), region.sge(2048, 2048)};
  const size_t unused = allocated_bytes();
  size_t posted = 0;
  for (QueuePair& pair : crew.pairs())
    while (!pair.post_recv({.sges = sges})) ++posted;
  const size_t used = allocated_bytes();
  CHECK(posted == (kPairs + 1) * kSmall.max_recv_wr);
  CHECK(used == unused);
}

TEST_CASE("an idle UD queue pair that has sent and received holds twice as much at most") {
  Crew crew(QpType::ud);
  for (size_t i = 0; i <= kPairs; ++i) crew.add();
  std::vector<QueuePair>& pairs = crew.pairs();
  std::array<WorkCompletion, 16> batch;
  const auto message = [&](size_t i) {
    static_cast<void>(pairs[0].post_recv({}));
    static_cast<void>(pairs[i].address());  // programs ask for it on the way of messages
    static_cast<void>(pairs[i].post_send({.wr_id = i, .destination = pairs[0].address()}));
    return eventually([&] { return crew.cq().poll(batch) != 0; });
  };
  REQUIRE(message(0));
  const size_t before = allocated_bytes();
  size_t sent = 0;
  for (size_t i = 1; i <= kPairs; ++i) sent += message(i) ? 1 : 0;
  CHECK(sent == kPairs);
  const size_t more = (allocated_bytes() - before) / kPairs;
  CAPTURE(more);
  // The send queue, and what pairs[0] remembers of the source.
  CHECK(more <= kMostOverDatagrams);
}

TEST_CASE("a connected RC queue pair gives back what it needed to send, once it is idle") {
  World world;
  RcParty a(world.add_device(), {.capacity = kSmall});
  RcParty b(world.add_device(), {.capacity = kSmall});
  const size_t before = allocated_bytes();
  join(a, b, llp::memory_stream_pair(10'000, 1460));
  const size_t connected = allocated_bytes();
  std::array<WorkCompletion, 16> batch;
  size_t received = 0;
  for (int i = 0; i < 10; ++i) {
    REQUIRE_FALSE(b.post_recv(0, 0, 5000));
    REQUIRE_FALSE(a.send(0, 5000));
    world.settle();
    received += b.recv_cq.poll(batch);
    static_cast<void>(a.send_cq.poll(batch));
  }
  CHECK(received == 10);
  const size_t busy = allocated_bytes();
  CHECK(busy - connected > 8192);
  CHECK(busy - connected <= 13'700);  // a hole of 8 bytes in each entry of a burst is 256
  world.advance(1500ms);
  world.advance(1500ms);
  const size_t quiet = allocated_bytes() - connected;
  CAPTURE(connected - before, busy - connected, quiet);
  CHECK(quiet <= 2 * kMostOfRc - 2 * 2526);
  // And needs it again.
  REQUIRE_FALSE(b.post_recv(0, 0, 5000));
  REQUIRE_FALSE(a.send(0, 5000));
  world.settle();
  CHECK(b.recv_cq.poll(batch) == 1);
}

TEST_CASE("an RC queue pair that ends in the middle of an FPDU gives back what it kept of it") {
  constexpr size_t kHalf = 30'000;
  World world;
  RcParty party(world.add_device());
  auto ends = llp::memory_stream_pair(1 << 20, 65480);
  party.impl().start(negotiated(std::move(ends.second), false));
  const std::vector<std::byte> fpdu =
      fpdu_bytes(Fpdu{.payload = std::vector<std::byte>(2 * kHalf)});
  write(*ends.first, std::span(fpdu).first(kHalf));
  world.settle();
  const size_t kept = allocated_bytes();
  party.qp.modify(QpState::error);
  CHECK(allocated_bytes() + kHalf < kept);
}

TEST_CASE("a first send that finds no memory is refused, and nothing else happens") {
  World world;
  Party source(world.add_device(), {.capacity = kSmall});
  Party target(world.add_device());
  target.post_receives(2, 100);
  {
    const Starvation starvation(1000);
    CHECK(source.send(target.address(), 0, 64) == Errc::no_resources);
  }
  world.settle();
  CHECK(drain(target.recv_cq).empty());
  REQUIRE_FALSE(source.send(target.address(), 0, 64));
  world.settle();
  CHECK(drain(target.recv_cq).size() == 1);
}

TEST_CASE("rc: a message that finds no memory to be sent waits for it, and is counted") {
  World world;
  Device& device = world.add_device();
  RcParty a(device);
  RcParty b(world.add_device());
  join(a, b, llp::memory_stream_pair(10'000, 1460));
  b.post_receives(2, 100);
  REQUIRE_FALSE(a.send(0, 64, 1));
  world.settle();
  world.advance(1500ms);
  world.advance(1500ms);  // the memory is given back
  {
    const Starvation starvation(1000);
    REQUIRE_FALSE(a.send(0, 64, 2));
    for (int i = 0; i < 10; ++i) static_cast<void>(device.progress());
  }
  CHECK(drain(b.recv_cq).size() == 1);
  CHECK(device.counter("rc_tx_no_memory") > 0);
  world.settle();
  CHECK(drain(b.recv_cq).size() == 1);
  CHECK(drain(a.send_cq).size() == 2);
}

TEST_CASE("rc: a Read whose copies find little memory is answered by shorter bursts") {
  constexpr size_t kBytes = 300'000;
  World world;
  RcParty reader(world.add_device(), {.memory = kBytes});
  RcParty source(world.add_device(), {.memory = kBytes, .access = kOpen});
  join(reader, source, llp::memory_stream_pair(1 << 20, 1460), {.ord = 4, .ird = 4});
  source.fill(pattern(kBytes, 1));
  {
    const Starvation starvation(60'000);
    REQUIRE_FALSE(reader.post(WrOpcode::rdma_read, 0, kBytes, source.remote()));
    world.settle();
  }
  CHECK(statuses(reader.send_cq) == Statuses{WcStatus::success});
  CHECK(reader.memory == source.memory);
  CHECK(world.devices[1].counter("rc_tx_no_memory") > 0);
  const uint64_t before = world.devices[1].counter("rc_tx_no_memory");
  REQUIRE_FALSE(reader.post(WrOpcode::rdma_read, 0, kBytes, source.remote()));
  world.settle();
  CHECK(statuses(reader.send_cq) == Statuses{WcStatus::success});
  CHECK(world.devices[1].counter("rc_tx_no_memory") == before);
}

TEST_CASE("rc: a Read whose copies find no memory waits for it, and is counted") {
  World world;
  RcParty reader(world.add_device());
  RcParty source(world.add_device(), {.access = kOpen});
  join(reader, source, llp::memory_stream_pair(1 << 20, 1460), {.ord = 4, .ird = 4});
  source.fill(pattern(4096, 1));
  // Both have sent, and not been copied.
  REQUIRE_FALSE(reader.post(WrOpcode::rdma_write, 0, 8, source.remote()));
  world.settle();
  source.post_receives(1, 100);
  reader.post_receives(1, 100);
  REQUIRE_FALSE(source.send(0, 64));
  world.settle();
  REQUIRE(statuses(reader.send_cq) == Statuses{WcStatus::success});
  {
    const Starvation starvation(1000);
    REQUIRE_FALSE(reader.post(WrOpcode::rdma_read, 0, 4096, source.remote()));
    for (int i = 0; i < 10; ++i)
      for (Device& device : world.devices) static_cast<void>(device.progress());
    CHECK(drain(reader.send_cq).empty());
  }
  CHECK(world.devices[1].counter("rc_tx_no_memory") > 0);
  world.settle();
  CHECK(statuses(reader.send_cq) == Statuses{WcStatus::success});
  CHECK(same(reader.bytes(0, 4096), source.bytes(0, 4096)));
}

TEST_CASE("rc: an FPDU with markers that finds no memory waits for it, and is counted") {
  constexpr size_t kBytes = 50'000;
  World world;
  Device& device = world.add_device();
  RcParty a(device, {.memory = kBytes});
  RcParty b(world.add_device(), {.memory = kBytes});
  join(a, b, llp::memory_stream_pair(1 << 20, 65480), {.send_markers = true});
  REQUIRE_FALSE(b.post_recv(0, 0, kBytes));
  REQUIRE_FALSE(b.post_recv(1, 0, kBytes));
  REQUIRE_FALSE(a.send(0, 64));
  world.settle();
  CHECK(drain(a.send_cq).size() == 1);
  a.fill(pattern(kBytes, 1));
  {
    const Starvation starvation(20'000);
    REQUIRE_FALSE(a.send(0, kBytes));
    for (int i = 0; i < 10; ++i) static_cast<void>(device.progress());
    CHECK(drain(a.send_cq).empty());
  }
  CHECK(device.counter("rc_tx_no_memory") > 0);
  world.settle();
  CHECK(statuses(a.send_cq) == Statuses{WcStatus::success});
  CHECK(drain(b.recv_cq).size() == 2);
  CHECK(b.memory == a.memory);
}

TEST_CASE("errors for which an error queue finds no memory are counted") {
  World world;
  Party target(world.add_device());
  const auto link = world.network->open(Address::parse("10.0.1.1"));
  const auto wrong = to_bytes({.incarnation = 7,
                               .payload = pattern(100, 1),
                               .opcode = kWriteRecord,
                               .stag = 0x12345600,
                               .message_length = 100});
  const auto send = [&] {
    const ConstBytes piece(wrong);
    const llp::OutgoingDatagram outgoing{target.address(), {&piece, 1}};
    link->send({&outgoing, 1});
    world.settle();
  };
  {
    const Starvation starvation(1000);
    send();
  }
  CHECK_FALSE(target.qp.poll_error());
  CHECK(world.devices[0].counter("error_queue_dropped") == 1);
  send();
  CHECK(target.qp.poll_error());
}
