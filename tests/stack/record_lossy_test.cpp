// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "base/interval_set.h"
#include "llp/impairment/impairment.h"
#include "stack/record_scene.h"

/// Write-Records over links that lose, repeat, reorder and spoil datagrams: the bytes that the
/// target calls valid are those that the link let through.
namespace diwarp::test {

namespace {

constexpr size_t kLongest = 4 << 20;

/// The outcome of each message's datagrams.
class Witness {
 public:
  void observe(ConstBytes datagram, llp::Verdict verdict) {
    const uint32_t msn = record_msn_of(datagram);
    if (passed_.empty()) first_ = msn;
    IntervalSet& passed = passed_.try_emplace(msn - first_, size_t{1} << 20).first->second;
    ++all_;
    if (verdict == llp::Verdict::dropped || verdict == llp::Verdict::corrupted) return;
    ++through_;
    const uint64_t offset = record_offset_of(datagram);
    passed.insert(offset, offset + record_payload_of(datagram));
  }
  /// The bytes of the `index`th message that passed.
  const IntervalSet& passed(uint32_t index) const { return passed_.at(index); }
  size_t all() const { return all_; }
  size_t through() const { return through_; }

 private:
  uint32_t first_ = 0;
  std::map<uint32_t, IntervalSet> passed_;  // by message, counted from 0
  size_t all_ = 0;
  size_t through_ = 0;
};

Ranges ranges_of(const IntervalSet& set) {
  Ranges all;
  for (const IntervalSet::Range& range : set) all.push_back({range.begin, range.end - range.begin});
  return all;
}

/// A source whose datagrams are impaired, and a target with room for one message.
struct Lossy {
  explicit Lossy(const llp::Impairment& impairment)
      : one(world.add_device([&](World::Link link) -> World::Link {
          auto worn = std::make_unique<llp::ImpairedDatagramLink>(
              std::move(link), impairment, world.clock,
              [this](ConstBytes datagram, llp::Verdict verdict) {
                witness.observe(datagram, verdict);
              });
          impaired = worn.get();
          return worn;
        })),
        two(world.add_device()),
        source(one, {.memory = kLongest}),
        target(two, {.memory = kLongest + 200, .datagram = {.max_record_ranges = 1U << 20}}),
        region(target.pd, std::span(target.memory), kWritable, kBase) {
    source.fill(pattern(kLongest, 1));
    target.fill(pattern(kLongest + 200, 2));
    before = target.memory;
  }

  /// Sends a message of `size` bytes to 100 in the region, and tells what the target says of it.
  std::vector<WorkCompletion> exchange(size_t size) {
    const Sge sge = source.mr.sge(0, size);
    REQUIRE_FALSE(source.qp.post_write_record({.sges = {sge},
                                               .flags = SendFlags::none,
                                               .destination = target.address(),
                                               .remote = {region.rkey(), kBase + 100}}));
    world.settle();
    REQUIRE(impaired->flush() == 0);
    world.settle();
    world.advance(100ms);
    return drain(target.recv_cq);
  }

  /// The bytes that the target tells of, and has, are those that passed; then its memory is as
  /// before.
  void check(uint32_t index, size_t size) {
    const auto records = exchange(size);
    const IntervalSet& passed = witness.passed(index);
    if (passed.empty() && size != 0) {
      CHECK(records.empty());  // none of its datagrams came, so nobody knows of it
    } else if (size != 0) {
      REQUIRE(records.size() == 1);
      CHECK(records[0].byte_count == size);
      CHECK(records[0].valid_bytes == passed.covered());
      CHECK(test::ranges_of(records[0].validity) == ranges_of(passed));
      CHECK(holds_exactly(records[0].validity, target.bytes(100, size), source.bytes(0, size),
                          std::span(before).subspan(100, size)));
      restore(records[0].validity);
    }
    CHECK(std::memcmp(target.memory.data(), before.data(), before.size()) == 0);
  }

  void restore(const ValidityMap& map) {
    for (auto [offset, length] : map.ranges())
      std::copy_n(before.begin() + static_cast<ptrdiff_t>(100 + offset), length,
                  target.memory.begin() + static_cast<ptrdiff_t>(100 + offset));
  }

  World world;
  Witness witness;
  llp::ImpairedDatagramLink* impaired = nullptr;
  Device& one;
  Device& two;
  Party source;
  Party target;
  MemoryRegion region;
  std::vector<std::byte> before;
};

/// How many messages of each size.
struct Sizes {
  size_t size;
  int count;
};

std::vector<Sizes> sizes() {
  return {{1, 300},     {100, 300},   {1434, 200},  {1435, 200},
          {10'000, 60}, {65'536, 20}, {1 << 20, 4}, {4 << 20, 2}};
}

}  // namespace

TEST_CASE(
    "whatever the link drops, exactly the bytes that arrived are valid, and no others have "
    "changed") {
  llp::Impairment impairment;
  impairment.drop = GENERATE(0.0, 0.001, 0.005, 0.01, 0.05, 0.2);
  impairment.seed = 7;
  CAPTURE(impairment.drop);
  Lossy lossy(impairment);
  uint32_t index = 0;
  for (const auto& [size, count] : sizes()) {
    CAPTURE(size);
    for (int i = 0; i < count; ++i) lossy.check(index++, size);
  }
  const auto all = static_cast<double>(lossy.witness.all());
  const double lost = all - static_cast<double>(lossy.witness.through());
  CHECK(lost / all == Catch::Approx(impairment.drop).margin(0.01));
  CHECK((impairment.drop > 0) == (lost > 0));
  CHECK(lossy.two.counter("rx_datagrams") == lossy.witness.through());
  CHECK(drops(lossy.two) == 0);
}

TEST_CASE("the same of a link that also repeats, reorders and spoils datagrams") {
  llp::Impairment impairment;
  impairment.drop = 0.03;
  impairment.corrupt = 0.02;
  impairment.duplicate = 0.05;
  impairment.reorder = 0.1;
  impairment.reorder_depth = 5;
  impairment.seed = GENERATE(uint64_t{1}, uint64_t{2}, uint64_t{3});
  CAPTURE(impairment.seed);
  Lossy lossy(impairment);
  uint32_t index = 0;
  for (const auto& [size, count] : sizes()) {
    CAPTURE(size);
    for (int i = 0; i < std::min(count, 50); ++i) lossy.check(index++, size);
  }
  CHECK(lossy.two.counter("drop_duplicate") + lossy.two.counter("drop_late") > 100);
  CHECK(lossy.two.counter("drop_contradiction") == 0);
  CHECK(lossy.two.counter("drop_range_limit") == 0);
}

TEST_CASE("a message of which every datagram is lost is one that nobody hears of") {
  llp::Impairment impairment;
  impairment.drop = 1;
  Lossy lossy(impairment);
  lossy.check(0, 5000);
  CHECK(lossy.two.counter("rx_datagrams") == 0);
}

TEST_CASE("the loss of any one datagram of a message costs that datagram's bytes") {
  const uint64_t lost = GENERATE(range(uint64_t{0}, uint64_t{8}));
  CAPTURE(lost);
  llp::Impairment impairment;
  impairment.drop_if = llp::drop_nth(lost);
  Lossy lossy(impairment);
  constexpr size_t kSize = 10'500;  // eight datagrams of 1434 bytes, the last one shorter
  const auto records = lossy.exchange(kSize);
  REQUIRE(records.size() == 1);
  const size_t begin = lost * 1434;
  const size_t length = std::min<size_t>(1434, kSize - begin);
  CHECK(records[0].validity.first_gap() == Range{begin, length});
  CHECK(records[0].validity.missing_bytes() == length);
}

TEST_CASE("at 5 % loss 200 messages of 1 MiB in MTU segments are valid to at least 94.5 %") {
  constexpr size_t kSize = 1 << 20;
  constexpr int kMessages = 200;
  llp::Impairment impairment;
  impairment.drop = 0.05;
  impairment.seed = 20260101;
  Lossy lossy(impairment);
  uint64_t valid = 0;
  for (int i = 0; i < kMessages; ++i) {
    const auto records = lossy.exchange(kSize);
    REQUIRE(records.size() == 1);
    REQUIRE(records[0].valid_bytes == lossy.witness.passed(static_cast<uint32_t>(i)).covered());
    valid += records[0].valid_bytes;
  }
  const double share = static_cast<double>(valid) / (double{kSize} * kMessages);
  CAPTURE(share);
  CHECK(share >= 0.945);
  CHECK(share <= 0.955);
}

TEST_CASE("several messages under way over a lossy link are told apart") {
  llp::Impairment impairment;
  impairment.drop = 0.1;
  impairment.reorder = 0.2;
  impairment.reorder_depth = 60;  // across messages
  Lossy lossy(impairment);
  constexpr size_t kSize = 20'000;
  constexpr uint32_t kMessages = 100;
  for (uint32_t i = 0; i < kMessages; ++i) {
    const Sge sge = lossy.source.mr.sge(i * 7, kSize);
    REQUIRE_FALSE(
        lossy.source.qp.post_write_record({.sges = {sge},
                                           .flags = SendFlags::none,
                                           .destination = lossy.target.address(),
                                           .remote = {lossy.region.rkey(), kBase + i * kSize}}));
  }
  lossy.world.settle();
  REQUIRE(lossy.impaired->flush() == 0);
  lossy.world.settle();
  lossy.world.advance(100ms);
  const auto records = drain(lossy.target.recv_cq);
  CHECK(records.size() == kMessages);
  for (const WorkCompletion& record : records) {
    const auto index = static_cast<uint32_t>((record.tagged_offset - kBase) / kSize);
    CAPTURE(index);
    CHECK(test::ranges_of(record.validity) == ranges_of(lossy.witness.passed(index)));
    CHECK(holds_exactly(record.validity, lossy.target.bytes(index * kSize, kSize),
                        lossy.source.bytes(index * 7, kSize),
                        std::span(lossy.before).subspan(index * kSize, kSize)));
  }
}

}  // namespace diwarp::test
