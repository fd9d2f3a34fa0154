// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>

#include "llp/impairment/impairment.h"
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr size_t kMessages = 10000;
constexpr size_t kLongest = 12000;
constexpr size_t kReceives = 1024;
constexpr size_t kSlot = kLongest + 1;

/// Contents that tell which message it is, in the first eight bytes of those that have as many.
std::vector<std::byte> contents(uint64_t seed, uint64_t index, size_t size) {
  auto bytes = pattern(size, seed * 1000003 + index);
  if (size >= sizeof index) std::memcpy(bytes.data(), &index, sizeof index);
  return bytes;
}

size_t random_size(Random& random) {
  switch (random.below(10)) {
    case 0:
      return random.below(8);
    case 1:
    case 2:
    case 3:
      return random.below(1472);
    default:
      return random.below(kLongest + 1);
  }
}

/// The state of the messages by the bytes on the wire, and their outcome.
class WireObserver {
 public:
  void observe(ConstBytes datagram, llp::Verdict verdict) {
    Fate& fate = fates_[msn_of(datagram)];
    const bool through = verdict == llp::Verdict::passed || verdict == llp::Verdict::duplicated ||
                         verdict == llp::Verdict::reordered;
    ++seen_[static_cast<size_t>(verdict)];
    ++(through ? fate.passed : fate.lost);
    fate.bytes += payload_of(datagram);
    if (last_of(datagram)) fate.length = offset_of(datagram) + payload_of(datagram);
  }

  struct Fate {
    size_t passed = 0;
    size_t lost = 0;
    size_t bytes = 0;
    std::optional<size_t> length;
  };
  const std::map<uint32_t, Fate>& fates() const { return fates_; }
  size_t seen(llp::Verdict verdict) const { return seen_[static_cast<size_t>(verdict)]; }

 private:
  std::map<uint32_t, Fate> fates_;
  std::array<size_t, 8> seen_{};
};

struct Delivered {
  uint64_t wr_id;
  std::vector<std::byte> bytes;
  friend bool operator==(const Delivered&, const Delivered&) = default;
};

struct Run {
  std::vector<Delivered> delivered;
  std::vector<std::vector<std::byte>> sent;
  std::vector<bool> whole;  // by index: the link let every segment pass
  std::vector<uint64_t> counters;
  size_t multi = 0;
  size_t multi_whole = 0;
};

Run run(uint64_t seed) {
  World world;
  WireObserver wire;
  llp::ImpairedDatagramLink* impaired = nullptr;
  llp::Impairment impairment;
  impairment.seed = seed;
  impairment.drop = 0.05;
  impairment.corrupt = 0.01;
  impairment.duplicate = 0.05;
  impairment.reorder = 0.05;
  const auto wear = [&](World::Link link) -> World::Link {
    auto worn = std::make_unique<llp::ImpairedDatagramLink>(
        std::move(link), impairment, world.clock,
        [&](ConstBytes datagram, llp::Verdict verdict) { wire.observe(datagram, verdict); });
    impaired = worn.get();
    return worn;
  };
  Device& source_device = world.add_device(wear);
  Device& target_device = world.add_device();
  Party source(source_device, {.memory = kMessages * 4});
  Party target(target_device, {.memory = kReceives * kSlot,
                               .receive_entries = 2 * kReceives,
                               .capacity = {.max_recv_wr = kReceives},
                               .datagram = {.message_timeout = 100ms,
                                            .max_open_messages = kReceives,
                                            .max_open_per_source = kReceives}});
  target.post_receives(kReceives, kSlot);

  Run result;
  const auto collect = [&] {
    for (const WorkCompletion& completion : drain(target.recv_cq)) {
      REQUIRE(completion.status == WcStatus::success);
      REQUIRE(completion.source == source.address());
      const auto bytes = target.bytes(completion.wr_id * kSlot, completion.byte_count);
      result.delivered.push_back({completion.wr_id, {bytes.begin(), bytes.end()}});
      REQUIRE_FALSE(target.post_recv(completion.wr_id, completion.wr_id * kSlot, kSlot));
    }
  };

  Random random(seed);
  for (uint64_t index = 0; index < kMessages; ++index) {
    const size_t size = random_size(random);
    result.sent.push_back(contents(seed, index, size));
    source.fill(result.sent.back());
    REQUIRE_FALSE(source.send(target.address(), 0, size, index, SendFlags::none));
    world.advance(1ms);
    collect();
  }
  REQUIRE(impaired->flush() == 0);
  world.settle();
  collect();
  world.advance(100ms);
  collect();

  // MSNs count up from the first; the map is ordered, but they may have wrapped.
  REQUIRE(wire.fates().size() == kMessages);
  auto first = wire.fates().begin();
  while (wire.fates().contains(first->first - 1)) first = wire.fates().find(first->first - 1);
  uint64_t partial = 0;
  for (uint32_t index = 0; index < kMessages; ++index) {
    const WireObserver::Fate& fate = wire.fates().at(first->first + index);
    REQUIRE(fate.length == result.sent[index].size());
    REQUIRE(fate.bytes == *fate.length);
    result.whole.push_back(fate.lost == 0);
    const bool multi = fate.passed + fate.lost > 1;
    result.multi += multi ? 1 : 0;
    result.multi_whole += multi && fate.lost == 0 ? 1 : 0;
    partial += fate.lost != 0 && fate.passed != 0 ? 1 : 0;
  }
  CHECK(wire.seen(llp::Verdict::corrupted) ==
        target_device.counter("drop_crc") + target_device.counter("drop_version") +
            target_device.counter("drop_class") + target_device.counter("drop_flags") +
            target_device.counter("drop_reserved"));
  CHECK(wire.seen(llp::Verdict::duplicated) ==
        target_device.counter("drop_late") + target_device.counter("drop_duplicate"));
  CHECK(wire.seen(llp::Verdict::reordered) > 1000);
  CHECK(target_device.counter("message_timeouts") == partial);
  for (const char* name : {"drop_share", "drop_no_receive", "drop_no_context", "drop_sources_full",
                           "drop_contradiction", "drop_range_limit", "drop_receive_too_small"}) {
    CAPTURE(name);
    CHECK(target_device.counter(name) == 0);
  }
  CHECK(target.qp.query().posted_receives == kReceives);  // none is lost to an incomplete message
  for (const Device& device : world.devices)
    for (const CounterValue& counter : device.counters()) result.counters.push_back(counter.value);
  return result;
}

}  // namespace

TEST_CASE("a lossy link delivers exactly the messages of which every segment passed, once each") {
  const Run first = run(20260101);
  CHECK(first.multi >= 1000);
  CHECK(first.multi_whole >= 1000);

  std::map<std::vector<std::byte>, int> expected;
  size_t whole = 0;
  for (size_t index = 0; index < kMessages; ++index) {
    if (!first.whole[index]) continue;
    ++expected[first.sent[index]];
    ++whole;
  }
  CHECK(first.delivered.size() == whole);
  for (const Delivered& delivered : first.delivered) {
    const auto found = expected.find(delivered.bytes);
    REQUIRE(found != expected.end());
    if (--found->second == 0) expected.erase(found);
  }
  CHECK(expected.empty());

  SECTION("and the same seed gives the same run") {
    const Run second = run(20260101);
    CHECK(second.delivered == first.delivered);
    CHECK(second.whole == first.whole);
    CHECK(second.counters == first.counters);
  }
  SECTION("and another seed another one") {
    const Run second = run(20260102);
    CHECK(second.whole != first.whole);
  }
}
