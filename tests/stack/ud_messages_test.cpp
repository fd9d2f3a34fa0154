// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr size_t kSegment = 1472 - kOverhead;  // payload of the in-memory network's datagrams

/// Two parties that have a device each.
struct Pair {
  explicit Pair(const PartyOptions& options = {.memory = 1 << 20})
      : a(world.add_device(), options), b(world.add_device(), options) {}

  World world;
  Party a;
  Party b;
};

}  // namespace

TEST_CASE("messages of every interesting size arrive whole, with their source") {
  Pair pair;
  const size_t sizes[] = {0,
                          1,
                          2,
                          kSegment - 1,
                          kSegment,
                          kSegment + 1,
                          2 * kSegment,
                          65 * kSegment,
                          100 * kSegment + 17};
  uint64_t seed = 1;
  for (size_t size : sizes) {
    CAPTURE(size);
    const auto sent = pattern(size, seed++);
    pair.a.fill(sent);
    const auto before = pattern(size + 1, 99);
    pair.b.fill(before);
    REQUIRE_FALSE(pair.b.post_recv(size + 1000, 0, size + 1));
    REQUIRE_FALSE(pair.a.send(pair.b.address(), 0, size, size + 2000));
    pair.world.settle();

    const auto sends = drain(pair.a.send_cq);
    REQUIRE(sends.size() == 1);
    CHECK(sends[0].wr_id == size + 2000);
    CHECK(sends[0].status == WcStatus::success);
    CHECK(sends[0].opcode == WcOpcode::send);
    CHECK(sends[0].byte_count == size);
    CHECK(sends[0].qp_number == pair.a.qp.number());

    const auto receives = drain(pair.b.recv_cq);
    REQUIRE(receives.size() == 1);
    CHECK(receives[0].wr_id == size + 1000);
    CHECK(receives[0].status == WcStatus::success);
    CHECK(receives[0].opcode == WcOpcode::recv);
    CHECK(receives[0].byte_count == size);
    CHECK(receives[0].qp_number == pair.b.qp.number());
    CHECK(receives[0].source == pair.a.address());
    CHECK_FALSE(receives[0].solicited);
    CHECK(same(pair.b.bytes(0, size), sent));
    CHECK(pair.b.memory[size] == before[size]);  // not a byte beyond the message
  }
  CHECK(drops(pair.world.devices[1]) == 0);
}

TEST_CASE("a message of 64 MiB arrives whole") {
  constexpr size_t kSize = size_t{64} << 20;
  Pair pair({.memory = kSize});
  pair.a.fill(pattern(kSize, 5));
  REQUIRE_FALSE(pair.b.post_recv(1, 0, kSize));
  REQUIRE_FALSE(pair.a.send(pair.b.address(), 0, kSize));
  pair.world.settle();
  const auto receives = drain(pair.b.recv_cq);
  REQUIRE(receives.size() == 1);
  CHECK(receives[0].byte_count == kSize);
  CHECK(pair.a.memory == pair.b.memory);
}

TEST_CASE("a send of 1 GiB is taken and one byte more is refused") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  std::array<Sge, 2> sges = {Sge{a.memory.data(), 1 << 30, a.mr.lkey()},
                             Sge{a.memory.data(), 1, a.mr.lkey()}};
  const auto to = b.address();
  CHECK(a.qp.post_send({.sges = sges, .destination = to}) == Errc::message_too_large);
  CHECK(a.qp.query().posted_sends == 0);
  CHECK_FALSE(a.qp.post_send({.wr_id = 8, .sges = std::span(sges).first(1), .destination = to}));
  const auto sends = drain(a.send_cq);
  REQUIRE(sends.size() == 1);  // it was taken; not all of its memory is registered
  CHECK(sends[0].wr_id == 8);
  CHECK(sends[0].status == WcStatus::local_protection_error);
}

TEST_CASE("messages are gathered and scattered over lists cut in different places") {
  Pair pair({.memory = 1 << 20, .capacity = {.max_send_sge = 8, .max_recv_sge = 8}});
  constexpr size_t kSize = 3 * kSegment + 100;
  const auto sent = pattern(kSize, 11);
  pair.a.fill(sent);
  const auto list = [](Party& party, std::span<const size_t> cuts, size_t stride, size_t total) {
    std::vector<Sge> sges;
    size_t used = 0;
    for (size_t i = 0; i < cuts.size(); ++i) {
      sges.push_back(party.mr.sge(i * stride, cuts[i]));
      used += cuts[i];
    }
    REQUIRE(used == total);
    return sges;
  };
  // The source is the sent bytes in order; the target has gaps between its pieces.
  const std::array<size_t, 6> source_cuts = {1, 0, kSegment, 7, 1, kSize - kSegment - 9};
  std::vector<Sge> source;
  size_t at = 0;
  for (size_t cut : source_cuts) {
    source.push_back(pair.a.mr.sge(at, cut));
    at += cut;
  }
  const std::array<size_t, 5> target_cuts = {3, kSegment - 5, 0, 2 * kSegment,
                                             kSize - 3 * kSegment + 2};
  constexpr size_t kStride = 4 * kSegment;
  const auto target = list(pair.b, target_cuts, kStride, kSize);
  std::fill(pair.b.memory.begin(), pair.b.memory.end(), std::byte{0xEE});

  REQUIRE_FALSE(pair.b.qp.post_recv({.wr_id = 1, .sges = target}));
  REQUIRE_FALSE(pair.a.qp.post_send({.sges = source, .destination = pair.b.address()}));
  pair.world.settle();
  const auto receives = drain(pair.b.recv_cq);
  REQUIRE(receives.size() == 1);
  CHECK(receives[0].byte_count == kSize);

  std::vector<std::byte> expected(pair.b.memory.size(), std::byte{0xEE});
  size_t from = 0;
  for (size_t i = 0; i < target_cuts.size(); ++i) {
    std::copy_n(&sent[from], target_cuts[i], &expected[i * kStride]);
    from += target_cuts[i];
  }
  CHECK(pair.b.memory == expected);
}

TEST_CASE("inline data may be overwritten as soon as the send is posted, and needs no region") {
  // The sender's link is full until the data has been overwritten.
  World world;
  Party a(world.add_device(), {.capacity = {.max_inline_data = 64}, .datagram = {.max_rate = 1}});
  Party b(world.add_device());
  b.post_receives(2, 64);
  auto data = pattern(64, 3);
  const auto copy = data;
  const std::array<Sge, 3> sges = {Sge{data.data(), 10, 0}, Sge{nullptr, 0, 0},
                                   Sge{data.data() + 10, 54, 12345}};
  const SendWorkRequest request{
      .sges = sges, .flags = SendFlags::inline_data, .destination = b.address()};
  REQUIRE_FALSE(a.qp.post_send(request));  // goes out at once, and uses the rate up
  REQUIRE_FALSE(a.qp.post_send(request));
  std::fill(data.begin(), data.end(), std::byte{0});
  world.settle();
  REQUIRE(drain(b.recv_cq).size() == 1);
  a.qp.set_max_rate(0);
  world.settle();
  REQUIRE(drain(b.recv_cq).size() == 1);
  CHECK(same(b.bytes(0, 64), copy));
  CHECK(same(b.bytes(64, 64), copy));
}

TEST_CASE("an unsignaled send completes only if it fails") {
  Pair pair;
  pair.b.post_receives(2, 100);
  REQUIRE_FALSE(pair.a.send(pair.b.address(), 0, 100, 1, SendFlags::none));
  pair.world.settle();
  CHECK(drain(pair.b.recv_cq).size() == 1);
  CHECK(drain(pair.a.send_cq).empty());
  CHECK(pair.a.qp.query().posted_sends == 0);

  const Sge unknown{pair.a.memory.data(), 10, 0};
  REQUIRE_FALSE(pair.a.qp.post_send({.wr_id = 2,
                                     .sges = {&unknown, 1},
                                     .flags = SendFlags::none,
                                     .destination = pair.b.address()}));
  const auto sends = drain(pair.a.send_cq);
  REQUIRE(sends.size() == 1);
  CHECK(sends[0].wr_id == 2);
  CHECK(sends[0].status == WcStatus::local_protection_error);
}

TEST_CASE("unsignaled sends free their places in the queue") {
  Pair pair({.capacity = {.max_send_wr = 4}});
  for (int i = 0; i < 100; ++i) {
    REQUIRE_FALSE(pair.a.send(pair.b.address(), 0, 10, 0, SendFlags::none));
    pair.world.settle();
  }
  CHECK(pair.world.devices[0].counter("tx_datagrams") == 100);
}

TEST_CASE("signal_all gives every send a completion, in order") {
  Pair pair({.signal_all = true});
  for (uint64_t i = 0; i < 10; ++i)
    REQUIRE_FALSE(pair.a.send(pair.b.address(), 0, 10, i, SendFlags::none));
  pair.world.settle();
  const auto sends = drain(pair.a.send_cq);
  REQUIRE(sends.size() == 10);
  for (uint64_t i = 0; i < 10; ++i) CHECK(sends[i].wr_id == i);
}

TEST_CASE("the receiver sees which sends were solicited, of one segment and of several") {
  Pair pair;
  pair.b.post_receives(4, 8000);
  const auto to = pair.b.address();
  REQUIRE_FALSE(pair.a.send(to, 0, 10, 1, SendFlags::solicited));
  REQUIRE_FALSE(pair.a.send(to, 0, 10, 1, SendFlags::none));
  REQUIRE_FALSE(pair.a.send(to, 0, 8000, 1, SendFlags::solicited));
  REQUIRE_FALSE(pair.a.send(to, 0, 8000, 1, SendFlags::none));
  pair.world.settle();
  const auto receives = drain(pair.b.recv_cq);
  REQUIRE(receives.size() == 4);
  CHECK(receives[0].solicited);
  CHECK_FALSE(receives[1].solicited);
  CHECK(receives[2].solicited);
  CHECK_FALSE(receives[3].solicited);
}

TEST_CASE("receives are used in the order they were posted") {
  Pair pair;
  pair.b.post_receives(10, 100);
  for (uint8_t i = 0; i < 10; ++i) {
    pair.a.memory[i] = std::byte{i};
    REQUIRE_FALSE(pair.a.send(pair.b.address(), i, 1));
  }
  pair.world.settle();
  const auto receives = drain(pair.b.recv_cq);
  REQUIRE(receives.size() == 10);
  for (uint8_t i = 0; i < 10; ++i) {
    CHECK(receives[i].wr_id == i);
    CHECK(pair.b.memory[i * 100U] == std::byte{i});
  }
}

TEST_CASE("interleaved messages of several sources to one queue pair are kept apart") {
  constexpr size_t kSenders = 5;
  constexpr size_t kEach = 4;
  constexpr size_t kSize = 200 * kSegment;  // several bursts, so that they interleave
  World world;
  Party target(world.add_device(), {.memory = kSenders * kEach * kSize});
  std::deque<Party> senders;
  for (size_t i = 0; i < kSenders; ++i)
    senders.emplace_back(world.add_device(), PartyOptions{.memory = kEach * kSize});
  REQUIRE(kSenders * kEach * 2 < QueuePairCapacity{}.max_recv_wr);
  for (size_t i = 0; i < 2 * kSenders * kEach; ++i)  // twice, as half of them may be held
    REQUIRE_FALSE(target.post_recv(i, i % (kSenders * kEach) * kSize, kSize));

  for (size_t i = 0; i < kSenders; ++i) {
    senders[i].fill(pattern(kEach * kSize, 100 + i));
    for (size_t k = 0; k < kEach; ++k)
      REQUIRE_FALSE(senders[i].send(target.address(), k * kSize, kSize));
  }
  world.settle();
  const auto receives = drain(target.recv_cq);
  REQUIRE(receives.size() == kSenders * kEach);
  std::map<size_t, size_t> arrived;  // of each sender, in its order
  std::set<uint64_t> used;
  bool interleaved = false;
  for (size_t i = 0; i < receives.size(); ++i) {
    const auto sender = static_cast<size_t>(
        std::find_if(senders.begin(), senders.end(),
                     [&](Party& party) { return party.address() == receives[i].source; }) -
        senders.begin());
    REQUIRE(sender < kSenders);
    const size_t k = arrived[sender]++;
    interleaved = interleaved || (i != 0 && receives[i].source != receives[i - 1].source);
    CHECK(used.insert(receives[i].wr_id).second);
    CHECK(same(target.bytes(receives[i].wr_id % (kSenders * kEach) * kSize, kSize),
               senders[sender].bytes(k * kSize, kSize)));
  }
  CHECK(interleaved);
  CHECK(drops(world.devices[0]) == 0);
}

TEST_CASE("one queue pair sends to several, each request to its own destination") {
  constexpr size_t kTargets = 6;
  World world;
  Party source(world.add_device(), {.memory = kTargets * 5000});
  std::deque<Party> targets;
  for (size_t i = 0; i < kTargets; ++i) targets.emplace_back(world.add_device());
  source.fill(pattern(kTargets * 5000, 4));
  for (int round = 0; round < 2; ++round)
    for (Party& target : targets) REQUIRE_FALSE(target.post_recv(0, 0, 5000));
  for (size_t i = 0; i < kTargets; ++i)
    REQUIRE_FALSE(source.send(targets[i].address(), i * 5000, 5000));
  world.settle();
  for (size_t i = 0; i < kTargets; ++i) {
    REQUIRE(drain(targets[i].recv_cq).size() == 1);
    CHECK(same(targets[i].bytes(0, 5000), source.bytes(i * 5000, 5000)));
  }
  CHECK(drain(source.send_cq).size() == kTargets);
}

TEST_CASE("a queue pair may send to itself") {
  World world;
  Party self(world.add_device());
  const auto sent = pattern(5000, 8);
  self.fill(sent);
  REQUIRE_FALSE(self.post_recv(1, 10000, 5000));
  REQUIRE_FALSE(self.send(self.address(), 0, 5000));
  world.settle();
  REQUIRE(drain(self.recv_cq).size() == 1);
  CHECK(same(self.bytes(10000, 5000), sent));
}

TEST_CASE("segments are as long as asked for, but never longer than the path carries") {
  const auto [asked, expected] = GENERATE(table<uint32_t, size_t>(
      {{0, 1472}, {64, 64}, {1000, 1000}, {1472, 1472}, {1473, 1472}, {65507, 1472}}));
  CAPTURE(asked);
  World world;
  std::vector<size_t> seen;
  const auto watch = [&](World::Link link) -> World::Link {
    return std::make_unique<llp::ImpairedDatagramLink>(
        std::move(link), llp::Impairment{}, world.clock,
        [&](ConstBytes datagram, llp::Verdict) { seen.push_back(datagram.size()); });
  };
  Party a(world.add_device(watch), {.datagram = {.segment = asked}});
  Party b(world.add_device());
  constexpr size_t kSize = 5000;
  b.post_receives(2, kSize);
  REQUIRE_FALSE(a.send(b.address(), 0, kSize));
  world.settle();
  CHECK(drain(b.recv_cq).size() == 1);
  const size_t payload = expected - kOverhead;
  REQUIRE(seen.size() == (kSize + payload - 1) / payload);
  for (size_t i = 0; i + 1 < seen.size(); ++i) CHECK(seen[i] == expected);
  CHECK(seen.back() == kSize - (seen.size() - 1) * payload + kOverhead);
}

TEST_CASE("datagrams that found the receive buffer full are counted") {
  World world({.queue_datagrams = 4});
  Party a(world.add_device());
  Party b(world.add_device());
  b.post_receives(20, 100);
  for (int i = 0; i < 10; ++i) REQUIRE_FALSE(a.send(b.address(), 0, 100));
  world.settle();
  CHECK(drain(b.recv_cq).size() == 4);
  CHECK(world.devices[1].counter("rx_overflow") == 6);
  for (int i = 0; i < 5; ++i) REQUIRE_FALSE(a.send(b.address(), 0, 100));
  world.settle();
  CHECK(world.devices[1].counter("rx_overflow") == 7);
}
