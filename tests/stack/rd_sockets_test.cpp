// SPDX-License-Identifier: Apache-2.0
#include "stack/rd_scene.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("rd: messages, records and Reads over sockets, with RNIC threads") {
  const char* host = GENERATE("127.0.0.1", "::1");
  Device one = Device::open(host);
  Device two = Device::open(host);
  const PartyOptions options = rd_options({.memory = 4 << 20});
  Party source(one, options);
  Party target(two, options);
  MemoryRegion region(target.pd, std::span(target.memory), kAllAccess);
  source.fill(pattern(1 << 20, 3));
  for (uint64_t i = 0; i < 20; ++i) {
    REQUIRE_FALSE(target.post_recv(i, 0, 1 << 20));
    REQUIRE_FALSE(source.send(target.address(), 0, (1 << 20) - i, i));
  }
  const auto received = await(target.recv_cq, 20);
  REQUIRE(received.size() == 20);
  for (uint64_t i = 0; i < 20; ++i) {
    CHECK(received[i].wr_id == i);
    CHECK(received[i].byte_count == (1 << 20) - i);
  }
  CHECK(same(target.bytes(0, (1 << 20) - 19), source.bytes(0, (1 << 20) - 19)));
  CHECK(await(source.send_cq, 20).size() == 20);

  REQUIRE_FALSE(source.qp.post_write_record({.wr_id = 1,
                                             .sges = {source.mr.sge(0, 1 << 20)},
                                             .destination = target.address(),
                                             .remote = {region.rkey(), region.base() + (2 << 20)},
                                             .immediate = 99}));
  const auto record = await(target.recv_cq, 1);
  REQUIRE(record.size() == 1);
  CHECK(record[0].immediate == 99);
  CHECK(record[0].validity.complete());
  REQUIRE_FALSE(source.qp.post_read({.wr_id = 2,
                                     .sges = {source.mr.sge(2 << 20, 1 << 20)},
                                     .destination = target.address(),
                                     .remote = {region.rkey(), region.base() + (2 << 20)}}));
  const auto done = await(source.send_cq, 2);
  REQUIRE(done.size() == 2);
  CHECK(done[0].status == WcStatus::success);
  CHECK(done[1].status == WcStatus::success);
  CHECK(same(source.bytes(2 << 20, 1 << 20), source.bytes(0, 1 << 20)));
}

TEST_CASE("rd: a peer that is slow to post receives is waited for, over sockets") {
  Device one = Device::open("127.0.0.1");
  Device two = Device::open("127.0.0.1");
  const PartyOptions options = rd_options();
  Party source(one, options);
  Party target(two, options);
  for (uint64_t i = 0; i < 100; ++i) REQUIRE_FALSE(source.send(target.address(), 0, 3000, i));
  CHECK(await(source.send_cq, 1, 20ms).empty());
  for (uint64_t i = 0; i < 100; ++i) {
    REQUIRE_FALSE(target.post_recv(i, 0, 3000));
    const auto received = await(target.recv_cq, 1);
    REQUIRE(received.size() == 1);
    REQUIRE(received[0].wr_id == i);
  }
  CHECK(await(source.send_cq, 100).size() == 100);
}

TEST_CASE("rd: several threads send to one queue pair, and to each other") {
  std::deque<Device> devices;
  std::deque<Party> parties;
  for (int i = 0; i < 3; ++i) {
    devices.push_back(Device::open("127.0.0.1"));
    parties.emplace_back(devices.back(), rd_options());
    parties.back().post_receives(100, 64);
  }
  std::deque<std::thread> threads;
  std::atomic<int> failures{0};
  for (Party& party : parties)
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        for (const Party& other : parties)
          if (&other != &party && party.send(other.address(), 0, 64)) ++failures;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(failures == 0);
  for (Party& party : parties) {
    CHECK(await(party.recv_cq, 100).size() == 100);
    CHECK(await(party.send_cq, 100).size() == 100);
  }
}

TEST_CASE("a queue pair on all addresses answers from the one that it was asked at", "[any]") {
  struct Case {
    const char* all;
    const char* asked;
    const char* asker;
  };
  const Case at = GENERATE(Case{"0.0.0.0", "127.0.0.2", "127.0.0.1"},
                           Case{"::", "127.0.0.2", "127.0.0.1"}, Case{"::", "::1", "::1"});
  const QpType type = GENERATE(QpType::ud, QpType::rd);
  CAPTURE(at.all, at.asked, type == QpType::rd);
  Device one = Device::open(at.asker);
  Device two = Device::open(at.all);
  const PartyOptions options{.memory = 1 << 20, .type = type};
  Party source(one, options);
  Party target(two, options);
  MemoryRegion region(target.pd, std::span(target.memory), kAllAccess);
  target.fill(pattern(1 << 20, 5));
  const Address to = Address::parse(at.asked, target.address().port());
  REQUIRE_FALSE(source.qp.post_read({.wr_id = 1,
                                     .sges = {source.mr.sge(0, 100000)},
                                     .destination = to,
                                     .remote = {region.rkey(), region.base()}}));
  const auto done = await(source.send_cq, 1);
  REQUIRE(done.size() == 1);
  REQUIRE(done[0].status == WcStatus::success);
  CHECK(same(source.bytes(0, 100000), target.bytes(0, 100000)));
}

TEST_CASE("rd: a queue pair on all addresses is a peer at each of them, at the same time",
          "[any]") {
  Device one = Device::open("127.0.0.1");
  Device two = Device::open("0.0.0.0");
  Party source(one, rd_options());
  Party target(two, rd_options());
  constexpr size_t kRounds = 50;
  target.post_receives(2 * kRounds, 64);
  for (uint64_t i = 0; i < kRounds; ++i)
    for (const char* host : {"127.0.0.1", "127.0.0.2"})
      REQUIRE_FALSE(source.send(Address::parse(host, target.address().port()), 0, 64, i));
  const auto received = await(target.recv_cq, 2 * kRounds);
  const auto sent = await(source.send_cq, 2 * kRounds);
  REQUIRE(received.size() == 2 * kRounds);
  REQUIRE(sent.size() == 2 * kRounds);
  for (const WorkCompletion& completion : sent) CHECK(completion.status == WcStatus::success);
  CHECK(source.qp.peers().size() == 2);
  CHECK(target.qp.peers().size() == 2);
  CHECK(one.counter("rd_restarts") == 0);
  CHECK(two.counter("rd_restarts") == 0);
  CHECK(two.counter("rd_associations") == 2);
}
