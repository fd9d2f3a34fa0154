// SPDX-License-Identifier: Apache-2.0
#include "stack/read_scene.h"

using namespace diwarp;
using namespace diwarp::test;

/// Guesses of a region's STag (RFC 5042 section 6.2.2): they find nothing, are counted, and cost
/// others no more than the packets.

namespace {

constexpr uint32_t kGuesses = 1 << 20;
constexpr uint32_t kBatch = 1 << 12;

/// A datagram in which the STag is changed in place. CRC32C is linear: what a change of the STag
/// does to it is looked up by the byte.
class Guess {
 public:
  Guess(const Segment& segment, size_t stag_at) : datagram_(to_bytes(segment)), at_(stag_at) {
    const Datagram zero(datagram_.size() - 4);
    const uint32_t base = castagnoli(zero);
    for (size_t place = 0; place < 4; ++place)
      for (uint32_t value = 0; value < 256; ++value) {
        Datagram one = zero;
        one[at_ + place] = static_cast<std::byte>(value);
        change_[place][value] = castagnoli(one) ^ base;
      }
  }

  const Datagram& with(uint32_t stag) {
    uint32_t crc = 0;
    for (size_t place = 0; place < 4; ++place) {
      const auto value = static_cast<uint8_t>(stag >> (24 - 8 * place));
      const auto before = std::to_integer<uint8_t>(datagram_[at_ + place]);
      crc ^= change_[place][value ^ before];
      datagram_[at_ + place] = static_cast<std::byte>(value);
    }
    for (size_t i = 0; i < 4; ++i)
      datagram_[datagram_.size() - 4 + i] ^= static_cast<std::byte>(crc >> 8 * i);
    return datagram_;
  }

 private:
  Datagram datagram_;
  size_t at_;
  uint32_t change_[4][256];
};

}  // namespace

TEST_CASE("2^20 guesses at a region's STag find nothing, are counted, and disturb no honest peer") {
  ReadScene scene({.reader = {.memory = 1 << 16},
                   .target = {.memory = 1 << 16,
                              .receive_entries = 512,
                              .capacity = {.max_recv_wr = kGuesses / kBatch}}});
  MemoryRegion writable(scene.target.pd, scene.target.memory,
                        Access::local_write | Access::remote_write);
  scene.get_acquainted();
  scene.target.post_receives(kGuesses / kBatch, 100);
  const auto before = scene.target.memory;
  Peer guesser(scene.world);

  const bool reads = GENERATE(false, true);
  const Segment segment = reads ? Segment{.opcode = kReadRequest,
                                          .sink_stag = 1,
                                          .read_length = 16,
                                          .source_offset = scene.source.base()}
                                : Segment{.payload = pattern(16, 1),
                                          .opcode = kWriteRecord,
                                          .tagged_offset = writable.base()};
  Guess guess(segment, reads ? 42 : 10);
  Random random(99);
  size_t answers = 0;
  size_t honest = 0;
  for (uint32_t i = 0; i < kGuesses; ++i) {
    uint32_t stag = 0;
    while (stag >> 8 == 0 || stag == scene.source.rkey() || stag == writable.rkey() ||
           stag == scene.target.mr.rkey())
      stag = static_cast<uint32_t>(random.next());
    guesser.send(scene.target.address(), guess.with(stag));
    if (i % kBatch != 0) continue;
    // In the midst of them a peer reads and sends as ever.
    REQUIRE_FALSE(scene.post(1000));
    REQUIRE_FALSE(scene.reader.send(scene.target.address(), 0, 0));
    scene.world.settle();
    for (const WorkCompletion& completion : drain(scene.reader.send_cq))
      honest += completion.status == WcStatus::success ? 1 : 0;
    answers += guesser.receive().size();
  }
  scene.world.settle();
  answers += guesser.receive().size();
  // In a time that stands still: as many as a source may miss within a second.
  CHECK(scene.target_count("drop_stag") == 100);
  CHECK(scene.target_count("drop_stag_limit") == kGuesses - 100);
  CHECK(honest == 2 * kGuesses / kBatch);
  CHECK(drain(scene.target.recv_cq).size() == kGuesses / kBatch);
  CHECK(scene.target.memory == before);
  // A peer needs as many datagrams as without the guesses, and hears nothing of them.
  CHECK(scene.from_reader.sent.size() == 2 * kGuesses / kBatch);
  CHECK(scene.from_target.responses().size() == kGuesses / kBatch);
  CHECK(answers == 100);
}

namespace {

/// Guesses that come from as many sources as there are.
void guess_from_everywhere(ReadScene& scene, Peer& guesser, uint32_t count, uint32_t first = 1) {
  for (uint32_t i = first; i < first + count; ++i) {
    guesser.send(scene.target.address(), Segment{.incarnation = i,
                                                 .payload = pattern(16, 1),
                                                 .opcode = kWriteRecord,
                                                 .stag = 0x100 * i});
    scene.world.settle();
  }
}

constexpr Access kWritable = Access::local_write | Access::remote_write;

}  // namespace

TEST_CASE("guesses from all sources together are limited, and known sources are not slowed") {
  ReadScene scene;
  MemoryRegion writable(scene.target.pd, scene.target.memory, kWritable);
  scene.get_acquainted();
  scene.target.post_receives(4, 100);
  Peer known(scene.world, 0, "10.0.1.10");
  Peer newcomer(scene.world, 0, "10.0.1.11");
  Peer guesser(scene.world);
  const Segment record{.payload = pattern(16, 1),
                       .opcode = kWriteRecord,
                       .stag = writable.rkey(),
                       .tagged_offset = writable.base()};
  known.send(scene.target.address(), Segment{.payload = pattern(16, 1)});
  guess_from_everywhere(scene, guesser, 5000);
  CHECK(scene.target_count("drop_stag") == 1000);
  CHECK(scene.target_count("drop_stag_limit") == 4000);
  CHECK(scene.read(3000).at(0).status == WcStatus::success);
  known.send(scene.target.address(), record);
  scene.world.settle();
  CHECK(drain(scene.target.recv_cq).size() == 2);
  // Newcomers are not listened to before the second is over, unless they show where they are.
  newcomer.send(scene.target.address(), record);
  scene.world.settle();
  CHECK(scene.target_count("drop_stag_limit") == 4001);
  scene.world.advance(1s);
  newcomer.send(scene.target.address(), record);
  scene.world.settle();
  CHECK(drain(scene.target.recv_cq).size() == 1);
}

TEST_CASE("while too many guess, a newcomer's Read gets through after it was challenged") {
  ReadScene scene;
  Peer guesser(scene.world);
  guess_from_everywhere(scene, guesser, 1001);
  CHECK(scene.target_count("drop_stag_limit") == 1);
  CHECK(scene.read(10).at(0).status == WcStatus::success);
  CHECK(scene.arrived(10));
  CHECK(scene.target_count("challenges_sent") == 1);
}

TEST_CASE("Sends with Invalidate that name no memory are limited as guesses") {
  World world;
  Device& device = world.add_device();
  Party target(device, {.capacity = {.max_recv_wr = 256}});
  const MemoryRegion region(target.pd, std::span(target.memory),
                            Access::local_write | Access::remote_invalidate);
  target.post_receives(200, 64);
  Stranger stranger(world);
  const bool in_one = GENERATE(true, false);
  const auto invalidate = [&](uint32_t msn, uint32_t stag) {
    Segment segment{
        .msn = msn, .q_key = stag, .payload = pattern(10, 1), .opcode = kSendInvalidate};
    segment.last = in_one;
    stranger.send(target.address(), segment);
    segment.last = true;
    segment.offset = 10;
    if (!in_one) stranger.send(target.address(), segment);
    world.settle();
  };
  for (uint32_t msn = 1; msn <= 150; ++msn) invalidate(msn, region.rkey() ^ 0x100);
  invalidate(151, region.rkey());
  CHECK(device.counter("drop_stag") == 100);
  CHECK(device.counter("drop_stag_limit") == (in_one ? 51 : 102));
  CHECK(region.valid());
  world.advance(1s);
  invalidate(152, region.rkey());
  CHECK_FALSE(region.valid());
}

TEST_CASE("a region for validated sources takes Write-Records and Reads of these alone") {
  ReadScene scene;
  MemoryRegion guarded(scene.target.pd, scene.target.memory,
                       kWritable | Access::remote_read | Access::validated_source);
  const auto before = scene.target.memory;
  const Sge sge = scene.reader.mr.sge(0, 10);
  const RemoteMemory remote{guarded.rkey(), guarded.base()};
  const auto write = [&] {
    return scene.reader.qp.post_write_record(
        {.sges = {sge}, .destination = scene.target.address(), .remote = remote});
  };
  REQUIRE_FALSE(write());
  scene.world.settle();
  CHECK(scene.target_count("drop_unvalidated") == 1);
  CHECK(scene.target.memory == before);
  CHECK(drain(scene.target.recv_cq).empty());
  const auto told = scene.reader.qp.poll_error();
  REQUIRE(told);
  CHECK(told->code == TerminateCode{1, 1, 0});  // as of an unknown STag
  drain(scene.reader.send_cq);

  // Even a Read that is no longer than its request is challenged.
  REQUIRE_FALSE(scene.reader.qp.post_read(
      {.sges = {sge}, .destination = scene.target.address(), .remote = remote}));
  scene.world.settle();
  CHECK(drain(scene.reader.send_cq).at(0).status == WcStatus::success);
  CHECK(scene.target_count("challenges_sent") == 1);
  CHECK(same(scene.reader.bytes(0, 10), std::span(before).first(10)));

  scene.reader.fill(pattern(10, 99));
  REQUIRE_FALSE(write());
  scene.world.settle();
  CHECK(drain(scene.target.recv_cq).size() == 1);
  CHECK(same(scene.target.bytes(0, 10), pattern(10, 99)));
}
