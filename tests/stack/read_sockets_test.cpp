// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// Reads over real sockets, with an engine thread at each end.

namespace {

struct Ends {
  explicit Ends(const char* host)
      : reader_device(Device::open(host)), target_device(Device::open(host)) {}

  Device reader_device;
  Device target_device;
  Party reader{reader_device,
               {.memory = 8 << 20, .datagram = {.read = {.timeout = 2s, .retries = 10}}}};
  Party target{target_device, {.memory = 8 << 20}};
  MemoryRegion source{target.pd, target.memory, Access::remote_read};
};

}  // namespace

TEST_CASE("Reads over sockets bring what stands in the target's memory") {
  const char* host = GENERATE("127.0.0.1", "::1");
  Ends ends(host);
  ends.target.fill(pattern(ends.target.memory.size(), 8));
  constexpr size_t kReads = 8;
  constexpr size_t kLength = 1 << 20;
  for (size_t i = 0; i < kReads; ++i) {
    const Sge sge = ends.reader.mr.sge(i * kLength, kLength);
    REQUIRE_FALSE(ends.reader.qp.post_read(
        {.wr_id = i,
         .sges = {sge},
         .destination = ends.target.address(),
         .remote = {ends.source.rkey(), ends.source.base() + i * kLength}}));
  }
  const auto completions = await(ends.reader.send_cq, kReads);
  REQUIRE(completions.size() == kReads);
  for (const WorkCompletion& completion : completions)
    CHECK(completion.status == WcStatus::success);
  CHECK(same(ends.reader.memory, ends.target.memory));
}

TEST_CASE("a reader on all addresses of both families knows its target's responses", "[any]") {
  const char* host = GENERATE("127.0.0.1", "::1");
  Device reader_device = Device::open("::");
  Device target_device = Device::open(host);
  Party reader(reader_device);
  Party target(target_device);
  MemoryRegion source(target.pd, target.memory, Access::remote_read);
  target.fill(pattern(target.memory.size(), 8));
  const Sge sge = reader.mr.sge();
  REQUIRE_FALSE(reader.qp.post_read({.sges = {sge},
                                     .destination = target.address(),
                                     .remote = {source.rkey(), source.base()},
                                     .limits = {.timeout = 2s, .retries = 5}}));
  const auto completions = await(reader.send_cq, 1);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == WcStatus::success);
  CHECK(same(reader.memory, target.memory));
}

TEST_CASE("a Read over sockets from a port that nobody has ends by its timeout", "[nobody]") {
  Ends ends("127.0.0.1");
  uint16_t port = 0;
  {
    const RawSocket gone(Address::parse("127.0.0.1"));
    port = gone.address().port();
  }
  const Sge sge = ends.reader.mr.sge(0, 1000);
  REQUIRE_FALSE(ends.reader.qp.post_read({.sges = {sge},
                                          .destination = Address::parse("127.0.0.1", port),
                                          .remote = {1, 2},
                                          .limits = {.timeout = 10ms, .retries = 2}}));
  const auto completions = await(ends.reader.send_cq, 1);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == WcStatus::timeout);
}

TEST_CASE("queue pairs that read from each other over sockets may go at any time") {
  for (int round = 0; round < 20; ++round) {
    Ends ends("127.0.0.1");
    for (size_t i = 0; i < 4; ++i) {
      const Sge sge = ends.reader.mr.sge();
      REQUIRE_FALSE(ends.reader.qp.post_read({.sges = {sge},
                                              .destination = ends.target.address(),
                                              .remote = {ends.source.rkey(), ends.source.base()}}));
    }
    std::this_thread::sleep_for(round * 50us);
  }
}
