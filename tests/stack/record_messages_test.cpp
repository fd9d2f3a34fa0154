// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include "llp/impairment/impairment.h"
#include "stack/record_scene.h"

/// Write-Records from a queue pair to another that arrive.
namespace diwarp::test {

namespace {

struct Pair {
  explicit Pair(const PartyOptions& options = {},
                const llp::MemoryOptions& network = {.queue_datagrams = 16384})
      : world(network), source(one, options), target(two, options) {
    target.fill(pattern(target.memory.size(), 0xEE));
  }

  WriteRecordWorkRequest request(size_t length, RemoteMemory remote) {
    sge = source.mr.sge(0, length);
    return {.wr_id = 5,
            .sges = std::span<const Sge>(&sge, 1),
            .destination = target.address(),
            .remote = remote};
  }
  WorkCompletion sent() {
    const auto all = drain(source.send_cq);
    REQUIRE(all.size() == 1);
    return all[0];
  }
  WorkCompletion received() {
    const auto all = drain(target.recv_cq);
    REQUIRE(all.size() == 1);
    return all[0];
  }

  World world;
  Device& one = world.add_device();
  Device& two = world.add_device();
  Party source;
  Party target;
  Sge sge;
};

}  // namespace

TEST_CASE(
    "a Write-Record of any length is placed whole, and its target is told without a receive") {
  Pair pair({.memory = 5 << 20});
  const size_t size =
      GENERATE(size_t{0}, size_t{1}, size_t{7}, size_t{1433}, size_t{1434}, size_t{1435},
               size_t{2868}, size_t{2869}, size_t{65'536}, size_t{1 << 20}, size_t{4 << 20});
  CAPTURE(size);
  MemoryRegion region(pair.target.pd, pair.target.bytes(100, size), kWritable);
  const auto contents = pattern(size, size);
  const auto before = pair.target.memory;
  pair.source.fill(contents);
  const auto at = reinterpret_cast<uintptr_t>(pair.target.memory.data()) + 100;
  REQUIRE_FALSE(pair.source.qp.post_write_record(pair.request(size, {region.rkey(), at})));
  pair.world.settle();

  const WorkCompletion sent = pair.sent();
  CHECK(sent.wr_id == 5);
  CHECK(sent.opcode == WcOpcode::write_record);
  CHECK(sent.status == WcStatus::success);
  CHECK(sent.byte_count == size);
  const WorkCompletion received = pair.received();
  CHECK(received.opcode == WcOpcode::recv_write_record);
  CHECK(received.status == WcStatus::success);
  CHECK(received.source == pair.source.address());
  CHECK(received.stag == region.rkey());
  CHECK(received.tagged_offset == at);
  CHECK(received.byte_count == size);
  CHECK(received.valid_bytes == size);
  CHECK(received.qp_number == pair.target.qp.number());
  CHECK_FALSE(received.has_immediate);
  CHECK_FALSE(received.solicited);
  CHECK(received.validity.length() == size);
  CHECK(received.validity.complete());
  CHECK(received.validity.gaps().empty());
  CHECK(same(pair.target.bytes(100, size), contents));
  CHECK(same(pair.target.bytes(0, 100), std::span(before).first(100)));
  CHECK(same(pair.target.bytes(100 + size, 1000), std::span(before).subspan(100 + size, 1000)));
  CHECK(pair.two.counter("records_completed") == 1);
  CHECK(pair.two.counter("records_partial") == 0);
  CHECK(pair.target.qp.open_records().empty());
  CHECK(drops(pair.two) == 0);
}

TEST_CASE("immediate data and the solicited flag travel with a Write-Record") {
  Pair pair;
  MemoryRegion region(pair.target.pd, std::span(pair.target.memory), kWritable, kBase);
  const size_t size = GENERATE(size_t{0}, size_t{10}, size_t{5000});
  const bool solicited = GENERATE(false, true);
  WriteRecordWorkRequest request = pair.request(size, {region.rkey(), kBase + 8});
  request.immediate = 0x0123456789ABCDEF;
  if (solicited) request.flags = SendFlags::signaled | SendFlags::solicited;
  REQUIRE_FALSE(pair.source.qp.post_write_record(request));
  pair.world.settle();
  const WorkCompletion received = pair.received();
  CHECK(received.has_immediate);
  CHECK(received.immediate == 0x0123456789ABCDEF);
  CHECK(received.solicited == solicited);
  CHECK(received.validity.complete());
  CHECK(received.tagged_offset == kBase + 8);
}

TEST_CASE("a Write-Record is gathered from several SGEs, and leaves receives alone") {
  Pair pair;
  MemoryRegion region(pair.target.pd, std::span(pair.target.memory), kWritable, kBase);
  pair.target.post_receives(4, 100);
  pair.source.fill(pattern(20'000, 1));
  const std::array<Sge, 3> sges = {pair.source.mr.sge(7000, 3000), pair.source.mr.sge(0, 0),
                                   pair.source.mr.sge(100, 2500)};
  REQUIRE_FALSE(pair.source.qp.post_write_record({.sges = std::span<const Sge>(sges),
                                                  .destination = pair.target.address(),
                                                  .remote = {region.rkey(), kBase}}));
  pair.world.settle();
  CHECK(pair.received().validity.complete());
  CHECK(same(pair.target.bytes(0, 3000), pair.source.bytes(7000, 3000)));
  CHECK(same(pair.target.bytes(3000, 2500), pair.source.bytes(100, 2500)));
  CHECK(pair.target.qp.query().posted_receives == 4);
}

TEST_CASE("a Write-Record goes into a window as into a region") {
  Pair pair;
  MemoryRegion parent(pair.target.pd, std::span(pair.target.memory),
                      kWritable | Access::window_bind);
  MemoryWindow window(pair.target.pd);
  REQUIRE_FALSE(pair.target.qp.post_send({.opcode = WrOpcode::bind_window,
                                          .binding = {.stag = window.stag(),
                                                      .region = parent.lkey(),
                                                      .address = &pair.target.memory[5000],
                                                      .length = 4000,
                                                      .access = Access::remote_write,
                                                      .base = 100}}));
  pair.world.settle();
  REQUIRE(window.query().valid);
  pair.source.fill(pattern(4000, 1));
  REQUIRE_FALSE(pair.source.qp.post_write_record(pair.request(3999, {window.stag(), 101})));
  pair.world.settle();
  const WorkCompletion received = pair.received();
  CHECK(received.stag == window.stag());
  CHECK(received.validity.complete());
  CHECK(same(pair.target.bytes(5001, 3999), pair.source.bytes(0, 3999)));
  REQUIRE_FALSE(pair.source.qp.post_write_record(pair.request(4000, {window.stag(), 101})));
  pair.world.settle();
  CHECK(drain(pair.target.recv_cq).empty());
  CHECK(pair.two.counter("drop_bounds") == 3);
}

TEST_CASE("many sources write into one region at once, each with a record of its own") {
  constexpr size_t kSources = 12;
  constexpr size_t kSize = 100'000;
  World world;
  Party target(world.add_device(), {.memory = kSources * kSize});
  MemoryRegion region(target.pd, std::span(target.memory), kWritable, kBase);
  std::deque<Party> sources;
  for (size_t i = 0; i < kSources; ++i) {
    Party& source = sources.emplace_back(world.add_device(), PartyOptions{.memory = kSize});
    source.fill(pattern(kSize, i));
    const Sge sge = source.mr.sge();
    REQUIRE_FALSE(source.qp.post_write_record({.sges = {sge},
                                               .destination = target.address(),
                                               .remote = {region.rkey(), kBase + i * kSize}}));
  }
  world.settle();
  const auto records = drain(target.recv_cq);
  REQUIRE(records.size() == kSources);
  for (const WorkCompletion& record : records) {
    const size_t i = (record.tagged_offset - kBase) / kSize;
    CHECK(record.source == sources[i].address());
    CHECK(record.validity.complete());
    CHECK(same(target.bytes(i * kSize, kSize), pattern(kSize, i)));
  }
}

TEST_CASE("Sends and Write-Records count their messages apart") {
  RecordScene scene;
  scene.target.post_receives(2, 10);
  scene.send(scene.stranger, static_cast<Scene&>(scene).whole(7));
  scene.send(scene.whole(7, 50, 100));
  const auto all = drain(scene.target.recv_cq);
  REQUIRE(all.size() == 2);
  CHECK(all[0].opcode == WcOpcode::recv);
  CHECK(all[1].opcode == WcOpcode::recv_write_record);
  CHECK(drops(scene.device) == 0);
}

TEST_CASE("records and Sends posted together arrive whatever their order") {
  Pair pair;
  MemoryRegion region(pair.target.pd, std::span(pair.target.memory), kWritable, kBase);
  pair.target.post_receives(10, 100);
  for (size_t i = 0; i < 10; ++i) {
    REQUIRE_FALSE(pair.source.send(pair.target.address(), 0, 100));
    REQUIRE_FALSE(
        pair.source.qp.post_write_record(pair.request(i * 500, {region.rkey(), kBase + 1000})));
  }
  pair.world.settle();
  size_t records = 0;
  size_t sends = 0;
  for (const WorkCompletion& completion : drain(pair.target.recv_cq)) {
    CHECK(completion.status == WcStatus::success);
    ++(completion.opcode == WcOpcode::recv_write_record ? records : sends);
  }
  CHECK(records == 10);
  CHECK(sends == 10);
}

TEST_CASE("of a Write-Record of 1 GiB what arrives is placed, the first byte and the last one") {
  constexpr size_t kSize = size_t{1} << 30;
  struct Mapping {
    Mapping()
        : address(::mmap(nullptr, kSize, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
      REQUIRE(address != MAP_FAILED);
    }
    ~Mapping() { ::munmap(address, kSize); }
    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address), kSize}; }
    void* address;
  };
  const Mapping from;
  const Mapping to;
  World world({.max_datagram = 65'507, .queue_datagrams = 64});
  // One datagram of a thousand gets through, and the last one.
  llp::Impairment impairment;
  impairment.drop_if = [](uint64_t, ConstBytes datagram) {
    return !last_of(datagram) && record_offset_of(datagram) / 65'000 % 1000 != 0;
  };
  Device& one = world.add_device([&](World::Link link) -> World::Link {
    return std::make_unique<llp::ImpairedDatagramLink>(std::move(link), impairment, world.clock);
  });
  Party source(one);
  Party target(world.add_device());
  MemoryRegion local(source.pd, from.bytes());
  MemoryRegion region(target.pd, to.bytes(), kWritable, kBase);
  from.bytes().front() = std::byte{1};
  from.bytes().back() = std::byte{2};
  const Sge sge = local.sge();
  REQUIRE_FALSE(source.qp.post_write_record(
      {.sges = {sge}, .destination = target.address(), .remote = {region.rkey(), kBase}}));
  world.settle();
  world.advance(100ms);
  const auto records = drain(target.recv_cq);
  REQUIRE(records.size() == 1);
  CHECK(records[0].byte_count == kSize);
  CHECK(records[0].validity.length() == kSize);
  CHECK(records[0].validity.contains(0, 60'000));
  CHECK(records[0].validity.contains(kSize - 1, 1));
  CHECK(records[0].validity.range_count() > 10);
  CHECK_FALSE(records[0].validity.complete());
  CHECK(to.bytes().front() == std::byte{1});
  CHECK(to.bytes().back() == std::byte{2});
}

TEST_CASE("a record that is open can be asked what of it is valid") {
  RecordScene scene;
  CHECK(scene.target.qp.open_records().empty());
  scene.send(scene.part(3, 100, 50, 300, 1000));
  scene.send(scene.part(3, 200, 100, 300, 1000));
  scene.send(scene.part(4, 0, 10, 20, 2000));
  const auto open = scene.target.qp.open_records();
  REQUIRE(open.size() == 2);
  CHECK(open[0].msn == 3);
  CHECK(open[0].source == scene.stranger.address());
  CHECK(open[0].stag == scene.region.rkey());
  CHECK(open[0].tagged_offset == kBase + 1000);
  CHECK(open[0].validity.length() == 300);
  CHECK(ranges_of(open[0].validity) == Ranges{{100, 50}, {200, 100}});
  CHECK(scene.is_placed(open[0].validity, open[0].tagged_offset, 3));
  CHECK(open[1].msn == 4);
  CHECK(ranges_of(open[1].validity) == Ranges{{0, 10}});
  CHECK(scene.records().empty());
  scene.send(scene.part(3, 150, 50, 300, 1000));
  scene.send(scene.part(3, 0, 100, 300, 1000));
  CHECK(ranges_of(open[0].validity) == Ranges{{100, 50}, {200, 100}});  // as it was
  CHECK(scene.target.qp.open_records().size() == 1);
  const auto records = scene.records();
  REQUIRE(records.size() == 1);
  CHECK(records[0].validity.complete());
}

}  // namespace diwarp::test
