// SPDX-License-Identifier: Apache-2.0
#include <atomic>

#include "stack/record_scene.h"

/// Write-Records over sockets, with RNIC threads.
namespace diwarp::test {

TEST_CASE("Write-Records arrive over sockets while the application does nothing") {
  constexpr size_t kSize = 200'000;
  constexpr size_t kMessages = 20;
  Device one = Device::open("127.0.0.1");
  Device two = Device::open("127.0.0.1");
  PartyOptions options{.memory = kSize * kMessages};
  options.datagram.max_rate = 100'000'000;  // little shall be lost
  Party source(one, options);
  Party target(two, options);
  const MemoryRegion region(target.pd, std::span(target.memory), kWritable, kBase);
  source.fill(pattern(source.memory.size(), 1));
  for (size_t i = 0; i < kMessages; ++i) {
    const Sge sge = source.mr.sge(i * kSize, kSize);
    REQUIRE_FALSE(source.qp.post_write_record({.sges = std::span<const Sge>(&sge, 1),
                                               .destination = target.address(),
                                               .remote = {region.rkey(), kBase + i * kSize}}));
  }
  const auto records = await(target.recv_cq, kMessages);
  REQUIRE(records.size() == kMessages);
  const std::vector<std::byte> before(kSize);
  for (const WorkCompletion& record : records) {
    const size_t at = record.tagged_offset - kBase;
    CHECK(record.source == source.address());
    CHECK(record.valid_bytes != 0);
    CHECK(holds_exactly(record.validity, target.bytes(at, kSize), source.bytes(at, kSize), before));
  }
  CHECK(await(source.send_cq, kMessages).size() == kMessages);
}

/// Of a message of 600 bytes whose segments of 100 bytes at 0, 200 and 400 were sent. Any may be
/// missing: a record finds no place while the ones before it wait for room in the completion queue.
/// Where no map was left, the others are.
bool is_made_of_segments(const ValidityMap& map) {
  for (const auto [offset, length] : map.ranges())
    if (offset % 200 != 0 || length != 100) return false;
  return map.length() == 600 && map.range_count() != 0;
}

TEST_CASE("maps are taken, copied and dropped by one thread while another makes them") {
  constexpr uint32_t kMessages = 300;
  Device device = Device::open("127.0.0.1");
  PartyOptions options;
  options.datagram.record_timeout = 20ms;
  options.datagram.max_validity_maps = 8;  // they have to come back
  options.datagram.max_open_records = 4;
  options.receive_entries = 16;
  Party target(device, options);
  const MemoryRegion region(target.pd, std::span(target.memory), kWritable, kBase);
  const Address host = Address::parse("127.0.0.1");
  std::atomic<bool> stop{false};
  std::atomic<uint32_t> sent{0};
  std::thread sender([&] {
    RawSocket socket(host);
    for (uint32_t msn = 0; msn < kMessages && !stop; ++msn) {
      for (uint32_t offset : {0U, 200U, 400U})
        socket.send(target.address(), to_bytes({.msn = msn,
                                                .offset = offset,
                                                .last = false,
                                                .payload = pattern(100, msn),
                                                .opcode = kWriteRecord,
                                                .stag = region.rkey(),
                                                .tagged_offset = kBase + offset,
                                                .message_length = 600}));
      ++sent;
      std::this_thread::sleep_for(50us);
    }
  });
  std::deque<ValidityMap> held;
  uint32_t reported = 0;
  uint32_t wrong = 0;
  const bool done = eventually([&] {
    std::array<WorkCompletion, 4> batch;
    const size_t count = target.recv_cq.poll(batch);
    for (size_t i = 0; i < count; ++i, ++reported) {
      const ValidityMap& map = batch[i].validity;
      wrong += is_made_of_segments(map) ? 0 : 1;
      held.push_back(map);
      if (held.size() > 3) held.pop_front();
    }
    for (const OpenRecord& open : target.qp.open_records())
      wrong += open.validity.contains(500, 1) ? 1 : 0;
    return sent == kMessages && reported != 0 && count == 0 && target.qp.open_records().empty();
  });
  stop = true;
  sender.join();
  CHECK(done);
  CHECK(wrong == 0);
  CHECK(reported <= kMessages);
  CHECK(device.counter("records_partial") >= reported);
}

}  // namespace diwarp::test
