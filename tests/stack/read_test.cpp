// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("a Read over datagrams brings what stands in the target's memory") {
  const size_t length =
      GENERATE(as<size_t>{}, 0, 1, 31, 32, 33, 1446, 1447, 65536, 262143, 262144, 262145, 700001);
  CAPTURE(length);
  ReadScene scene;
  const auto before = scene.reader.memory;
  const auto completions = scene.read(length);
  REQUIRE(completions.size() == 1);
  const WorkCompletion& completion = completions[0];
  CHECK(completion.status == WcStatus::success);
  CHECK(completion.opcode == WcOpcode::rdma_read);
  CHECK(completion.byte_count == length);
  CHECK(completion.valid_bytes == length);
  CHECK(completion.validity.complete());
  CHECK(scene.arrived(length));
  CHECK(std::equal(before.begin() + static_cast<ptrdiff_t>(length), before.end(),
                   scene.reader.memory.begin() + static_cast<ptrdiff_t>(length)));
  CHECK(drops(scene.reader_device) == 0);
  CHECK(drops(scene.target_device) == 0);
}

TEST_CASE(
    "a Read over datagrams asks for at most 256 KiB at a time, in order, and for nothing twice") {
  ReadScene scene;
  scene.get_acquainted();
  REQUIRE(scene.read(1 << 20).size() == 1);
  uint64_t offset = scene.source.base();
  uint32_t msn = scene.from_reader.requests().at(0).msn;
  for (const Segment& request : scene.from_reader.requests()) {
    CHECK(request.last);
    CHECK(request.offset == 0);
    CHECK(request.msn == msn++);
    CHECK(request.read_length == 262144);
    CHECK(request.source_stag == scene.source.rkey());
    CHECK(request.source_offset == offset);
    offset += request.read_length;
  }
  CHECK(offset == scene.source.base() + (1 << 20));
  CHECK(scene.from_reader.requests().size() == 4);
  CHECK(scene.target_count("reads_served") == 5);
}

TEST_CASE("a Read may scatter what it brings, and be of the queue pair's own memory") {
  World world;
  Party party(world.add_device(), {.memory = 400'000});
  MemoryRegion source(party.pd, party.memory, Access::remote_read);
  party.fill(pattern(200'000, 5));
  const std::array<Sge, 3> sges{party.mr.sge(390'000, 1000), party.mr.sge(200'000, 0),
                                party.mr.sge(200'000, 150'000)};
  REQUIRE_FALSE(party.qp.post_read({.sges = std::span<const Sge>(sges),
                                    .destination = party.address(),
                                    .remote = {source.rkey(), source.base() + 1}}));
  world.settle();
  const auto completions = drain(party.send_cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == WcStatus::success);
  CHECK(same(party.bytes(390'000, 1000), party.bytes(1, 1000)));
  CHECK(same(party.bytes(200'000, 150'000), party.bytes(1001, 150'000)));
}

TEST_CASE("the parts of a Read have sinks of their own, that are not the memory's STag") {
  ReadScene scene;
  scene.get_acquainted();
  REQUIRE(scene.read(1 << 20).size() == 1);
  std::vector<uint32_t> sinks;
  for (const Segment& request : scene.from_reader.requests()) {
    CHECK(request.sink_stag != scene.reader.mr.lkey());
    CHECK(std::find(sinks.begin(), sinks.end(), request.sink_stag) == sinks.end());
    sinks.push_back(request.sink_stag);
  }
  size_t ends = 0;
  for (const Segment& response : scene.from_target.responses()) {
    CHECK(std::find(sinks.begin(), sinks.end(), response.stag) != sinks.end());
    ends += response.last ? 1 : 0;
  }
  CHECK(ends == 4);
}

TEST_CASE("the bounds of Reads are checked when a queue pair is made") {
  World world;
  Device& device = world.add_device();
  const auto refused = [&](const ReadOptions& options) {
    return refusal([&] { Party(device, {.datagram = {.read = options}}); });
  };
  CHECK_FALSE(refused({.max_outstanding = 1024, .window = 256, .max_responses = 0}));
  for (const ReadOptions& options :
       {ReadOptions{.timeout = 0ms}, ReadOptions{.deadline = -1ms},
        ReadOptions{.max_outstanding = 0}, ReadOptions{.max_outstanding = 1025},
        ReadOptions{.window = 0}, ReadOptions{.window = 257}, ReadOptions{.max_responses = 65537}})
    CHECK(refused(options) == Errc::invalid_argument);
}

TEST_CASE("a Read is refused that a queue pair over datagrams cannot do") {
  ReadScene scene;
  const Sge sge = scene.reader.mr.sge(0, 8);
  const auto refused = [&](const SendWorkRequest& request) {
    return scene.reader.qp.post_send(request);
  };
  SendWorkRequest request{.sges = {&sge, 1},
                          .destination = scene.target.address(),
                          .opcode = WrOpcode::rdma_read,
                          .remote = scene.remote()};
  for (const char* group : {"239.1.2.3", "255.255.255.255"}) {
    SendWorkRequest to_group = request;
    to_group.destination = Address::parse(group, 4000);
    CHECK(refused(to_group) == Errc::invalid_destination);
  }
  SendWorkRequest changed = request;
  changed.flags = SendFlags::inline_data;
  CHECK(refused(changed) == Errc::invalid_argument);
  changed = request;
  changed.immediate = 1;
  CHECK(refused(changed) == Errc::invalid_argument);
  changed = request;
  changed.remote.offset = ~uint64_t{0} - 6;
  CHECK(refused(changed) == Errc::invalid_argument);
  changed = request;
  changed.opcode = WrOpcode::rdma_read_with_invalidate;
  CHECK(refused(changed) == Errc::unsupported_operation);
  for (const WrOpcode atomic : {WrOpcode::fetch_add, WrOpcode::compare_swap, WrOpcode::swap}) {
    changed.opcode = atomic;
    CHECK(refused(changed) == Errc::unsupported_operation);
  }
  CHECK_FALSE(refused(request));
}
