// SPDX-License-Identifier: Apache-2.0
#include "llp/impairment/impairment.h"

#include <algorithm>
#include <bit>
#include <map>

#include "datagrams.h"
#include "support/bytes.h"
#include "support/catch.h"
#include "support/contents.h"
#include "unit/base/failing_allocation.h"

namespace diwarp::llp {
namespace {

using namespace std::chrono_literals;
using test::burst_of;
using test::bytes_of;
using test::text_of;
using test::text_pattern;

const Address kTo = Address::parse("192.0.2.1:5");

/// A link that keeps what it is given, and takes only `room` datagrams until told otherwise.
class Recorder final : public DatagramLink {
 public:
  SendResult send(std::span<const OutgoingDatagram> burst) override {
    calls.push_back(burst.size());
    SendResult result;
    for (const OutgoingDatagram& datagram : burst) {
      std::string text;
      for (ConstBytes piece : datagram.pieces) text += text_of(piece);
      if (text == refused_text) return {result.sent, SendStatus::refused, EMSGSIZE};
      if (room == 0) return {result.sent, SendStatus::would_block, 0};
      --room;
      sent.push_back(text);
      ++result.sent;
    }
    return result;
  }
  size_t receive(ReceiveBatch& batch) override {
    batch.clear();
    return 0;
  }
  size_t max_datagram(const Address&) override { return 1234; }
  Address local_address() const override { return Address::parse("192.0.2.9:9"); }
  int descriptor() const override { return 77; }
  uint64_t overflowed() const override { return 5; }

  std::vector<std::string> sent;
  std::vector<size_t> calls;  // how many datagrams each call had
  size_t room = SIZE_MAX;
  std::string refused_text = "refuse me";
};

struct Told {
  std::string text;
  Verdict what;
  friend bool operator==(const Told&, const Told&) = default;
};

/// An impaired link, what it told its observer and what came out of it.
struct Rig {
  explicit Rig(Impairment impairment)
      : recorder(new Recorder),
        link(std::unique_ptr<DatagramLink>(recorder), std::move(impairment), clock,
             [this](ConstBytes datagram, Verdict what) {
               told.push_back({text_of(datagram), what});
             }) {}

  /// Sends one by one.
  void send_numbered(size_t count, size_t size = 50) {
    for (size_t i = 0; i < count; ++i) {
      REQUIRE(test::send_one(link, kTo, text_pattern(size, i)).sent == 1);
    }
  }

  size_t count(Verdict what) const {
    return static_cast<size_t>(
        std::count_if(told.begin(), told.end(), [&](const Told& t) { return t.what == what; }));
  }

  ManualClock clock;
  std::vector<Told> told;
  Recorder* recorder;
  ImpairedDatagramLink link;
};

std::vector<std::string> letters(size_t count) {
  std::vector<std::string> result;
  for (size_t i = 0; i < count; ++i) result.push_back(std::string(1, static_cast<char>('a' + i)));
  return result;
}

TEST_CASE("a link impaired by nothing passes bursts on as they are") {
  auto owned = std::make_unique<Recorder>();
  Recorder& recorder = *owned;
  ImpairedDatagramLink link(std::move(owned), Impairment{});
  const auto burst = burst_of(kTo, letters(20));
  CHECK(link.send(burst.get()).sent == 20);
  CHECK(recorder.calls == std::vector<size_t>{20});
  CHECK(recorder.sent == letters(20));
  CHECK(link.max_datagram(kTo) == 1234);
  CHECK(link.local_address() == recorder.local_address());
  CHECK(link.descriptor() == 77);
  CHECK(link.overflowed() == 5);
  CHECK(&link.inner() == &recorder);
}

TEST_CASE("datagrams that pass stay together in bursts, also between dropped ones") {
  Impairment impairment;
  impairment.drop_if = drop_nth(5);
  Rig rig(impairment);
  const auto burst = burst_of(kTo, letters(10));
  CHECK(rig.link.send(burst.get()).sent == 10);
  CHECK(rig.recorder->calls == std::vector<size_t>{5, 4});
  auto expected = letters(10);
  expected.erase(expected.begin() + 5);
  CHECK(rig.recorder->sent == expected);
}

TEST_CASE("probabilities are kept") {
  const auto [member, verdict] =
      GENERATE(table<double Impairment::*, Verdict>({{&Impairment::drop, Verdict::dropped},
                                                     {&Impairment::corrupt, Verdict::corrupted},
                                                     {&Impairment::truncate, Verdict::truncated},
                                                     {&Impairment::duplicate, Verdict::duplicated},
                                                     {&Impairment::reorder, Verdict::reordered}}));
  Impairment impairment;
  impairment.seed = 42;
  impairment.*member = 0.1;
  Rig rig(impairment);
  rig.send_numbered(10000);
  // Five standard deviations of 30.
  CHECK(rig.count(verdict) > 850);
  CHECK(rig.count(verdict) < 1150);
  CHECK(rig.count(verdict) + rig.count(Verdict::passed) == 10000);
}

TEST_CASE("probability one strikes always") {
  Impairment impairment;
  impairment.drop = 1;
  Rig rig(impairment);
  rig.send_numbered(100);
  CHECK(rig.recorder->sent.empty());
  CHECK(rig.count(Verdict::dropped) == 100);
}

Impairment everything(uint64_t seed) {
  Impairment impairment;
  impairment.seed = seed;
  impairment.drop = impairment.corrupt = impairment.truncate = 0.1;
  impairment.duplicate = impairment.reorder = 0.1;
  return impairment;
}

TEST_CASE("the same seed and the same datagrams give the same run, another seed another") {
  Rig first(everything(7));
  Rig second(everything(7));
  Rig other(everything(8));
  for (Rig* rig : {&first, &second, &other}) rig->send_numbered(1000);
  CHECK(first.recorder->sent == second.recorder->sent);
  CHECK(first.told == second.told);
  CHECK(first.told != other.told);
}

TEST_CASE("how datagrams are cut into bursts does not change what becomes of them") {
  Rig one_by_one(everything(7));
  Rig in_bursts(everything(7));
  one_by_one.send_numbered(300);
  for (size_t i = 0; i < 300; i += 100) {
    test::Burst burst;
    for (size_t k = i; k < i + 100; ++k) burst.add(kTo, text_pattern(50, k));
    CHECK(in_bursts.link.send(burst.get()).sent == 100);
  }
  CHECK(one_by_one.told == in_bursts.told);
  CHECK(one_by_one.recorder->sent == in_bursts.recorder->sent);
}

TEST_CASE("one impairment does not change what another draws") {
  Impairment drop;
  drop.drop = 0.2;
  Impairment both = drop;
  both.duplicate = 0.2;
  Rig a(drop);
  Rig b(both);
  a.send_numbered(500);
  b.send_numbered(500);
  for (size_t i = 0; i < 500; ++i) {
    const bool dropped_a = a.told[i].what == Verdict::dropped;
    const bool dropped_b = b.told[i].what == Verdict::dropped;
    REQUIRE(dropped_a == dropped_b);
  }
}

TEST_CASE("the observer sees each datagram once, in order, as it was given") {
  Rig rig(everything(3));
  rig.send_numbered(200);
  REQUIRE(rig.told.size() == 200);
  for (size_t i = 0; i < 200; ++i) CHECK(rig.told[i].text == text_pattern(50, i));
}

TEST_CASE("the output follows from the verdicts alone") {
  Impairment impairment = everything(11);
  impairment.corrupt = impairment.truncate = 0;
  impairment.reorder_depth = 4;
  Rig rig(impairment);
  rig.send_numbered(500);
  // A reordered datagram follows the fourth after it.
  std::vector<std::string> expected;
  std::multimap<size_t, std::string> held;
  for (size_t i = 0; i < rig.told.size(); ++i) {
    const auto& [text, what] = rig.told[i];
    if (what == Verdict::reordered) held.emplace(i + 4, text);
    if (what == Verdict::passed) expected.push_back(text);
    if (what == Verdict::duplicated) expected.insert(expected.end(), 2, text);
    for (auto [it, end] = held.equal_range(i); it != end; ++it) expected.push_back(it->second);
    held.erase(i);
  }
  CHECK(rig.recorder->sent == expected);
  CHECK(rig.link.queued() == held.size());
}

TEST_CASE("a corrupted datagram differs in one bit, a truncated one is a shorter beginning") {
  Impairment corrupt;
  corrupt.corrupt = 1;
  Rig flipped(corrupt);
  flipped.send_numbered(200);
  for (size_t i = 0; i < 200; ++i) {
    const std::string original = text_pattern(50, i);
    const std::string& changed = flipped.recorder->sent[i];
    REQUIRE(changed.size() == 50);
    int bits = 0;
    for (size_t k = 0; k < 50; ++k) {
      bits += std::popcount(static_cast<uint8_t>(changed[k] ^ original[k]));
    }
    REQUIRE(bits == 1);
  }

  Impairment truncate;
  truncate.truncate = 1;
  Rig cut(truncate);
  cut.send_numbered(200);
  for (size_t i = 0; i < 200; ++i) {
    const std::string& changed = cut.recorder->sent[i];
    REQUIRE(changed.size() < 50);
    REQUIRE(changed == text_pattern(50, i).substr(0, changed.size()));
  }
}

TEST_CASE("an empty datagram passes where there is nothing to corrupt or cut") {
  Impairment impairment;
  impairment.corrupt = impairment.truncate = 1;
  Rig rig(impairment);
  test::send_one(rig.link, kTo, "");
  CHECK(rig.recorder->sent == std::vector<std::string>{""});
  CHECK(rig.told[0].what == Verdict::passed);
}

TEST_CASE("rules drop by position, pattern and opcode") {
  const auto dropped = [](const DropRule& rule, const std::vector<std::string>& datagrams) {
    Impairment impairment;
    impairment.drop_if = rule;
    Rig rig(impairment);
    rig.link.send(burst_of(kTo, datagrams).get());
    std::string result;
    for (const Told& told : rig.told) result += told.what == Verdict::dropped ? 'x' : '.';
    return result;
  };
  CHECK(dropped(drop_nth(2), letters(5)) == "..x..");
  CHECK(dropped(drop_every(3), letters(7)) == "..x..x.");
  CHECK(dropped(drop_every(0), letters(3)) == "...");
  CHECK(dropped(drop_bitmap({true, false, true}), letters(5)) == "x.x..");
  const std::vector<std::string> opcodes = {"\x01\x43", "\x01\x4c", "\x01", "\x02\x83", "\x03\x53"};
  CHECK(dropped(drop_opcode(1, 0x0F, 0x03), opcodes) == "x..xx");
  CHECK(dropped(drop_nth_match(drop_opcode(1, 0x0F, 0x03), 1), opcodes) == "...x.");
}

TEST_CASE("overtaken datagrams wait for later ones, and flush lets them go") {
  Impairment impairment;
  impairment.reorder = 1;
  impairment.reorder_depth = 2;
  Rig rig(impairment);
  ReceiveBatch batch(1, 100, 1);
  const auto all = letters(5);
  for (const std::string& letter : all) test::send_one(rig.link, kTo, letter);
  rig.link.receive(batch);
  CHECK(rig.recorder->sent == std::vector<std::string>{"a", "b", "c"});
  CHECK(rig.link.queued() == 2);
  CHECK(rig.link.flush() == 0);
  CHECK(rig.recorder->sent == all);
}

TEST_CASE("delayed datagrams leave when they are due, by a later call of either kind") {
  Impairment impairment;
  impairment.delay = 10ms;
  Rig rig(impairment);
  ReceiveBatch batch(1, 100, 1);
  test::send_one(rig.link, kTo, "a");
  CHECK(rig.told[0].what == Verdict::delayed);
  rig.clock.advance(4ms);
  test::send_one(rig.link, kTo, "b");
  rig.clock.advance(5ms);
  rig.link.receive(batch);
  CHECK(rig.recorder->sent.empty());
  rig.clock.advance(1ms);
  rig.link.receive(batch);
  CHECK(rig.recorder->sent == std::vector<std::string>{"a"});
  rig.clock.advance(4ms);
  test::send_one(rig.link, kTo, "c");
  CHECK(rig.recorder->sent == std::vector<std::string>{"a", "b"});
  CHECK(rig.link.flush() == 0);
  CHECK(rig.recorder->sent == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("datagrams with the same delay keep their order, jitter changes it within bounds") {
  Impairment steady;
  steady.delay = 10ms;
  Rig in_order(steady);
  in_order.send_numbered(100);
  in_order.clock.advance(10ms);
  ReceiveBatch batch(1, 100, 1);
  in_order.link.receive(batch);
  REQUIRE(in_order.recorder->sent.size() == 100);
  for (size_t i = 0; i < 100; ++i) CHECK(in_order.recorder->sent[i] == text_pattern(50, i));

  Impairment jittery = steady;
  jittery.jitter = 5ms;
  Rig mixed(jittery);
  mixed.send_numbered(100);
  mixed.clock.advance(10ms - 1ns);
  mixed.link.receive(batch);
  CHECK(mixed.recorder->sent.empty());
  mixed.clock.advance(5ms);
  mixed.link.receive(batch);
  auto sorted = mixed.recorder->sent;
  CHECK(sorted.size() == 100);
  CHECK(sorted != in_order.recorder->sent);
  std::sort(sorted.begin(), sorted.end());
  std::sort(in_order.recorder->sent.begin(), in_order.recorder->sent.end());
  CHECK(sorted == in_order.recorder->sent);
}

TEST_CASE("an overtaken datagram is not ahead of those that are delayed") {
  Impairment impairment;
  impairment.delay = 10ms;
  impairment.reorder = 0.3;
  impairment.reorder_depth = 1;
  Rig rig(impairment);
  rig.send_numbered(100);
  rig.link.flush();
  REQUIRE(rig.recorder->sent.size() == 100);
  CHECK(rig.count(Verdict::reordered) > 10);
  for (size_t i = 0; i + 1 < 100; ++i) {
    if (rig.told[i].what != Verdict::reordered) continue;
    if (rig.told[i + 1].what != Verdict::delayed) continue;
    const auto& sent = rig.recorder->sent;
    const auto overtaken = std::find(sent.begin(), sent.end(), text_pattern(50, i));
    const auto overtaking = std::find(sent.begin(), sent.end(), text_pattern(50, i + 1));
    REQUIRE(overtaking < overtaken);
  }
}

TEST_CASE("a datagram that cannot be held back any more is dropped, and said to be") {
  Impairment impairment;
  impairment.delay = 1s;
  impairment.queue_limit = 3;
  Rig rig(impairment);
  rig.send_numbered(5);
  CHECK(rig.count(Verdict::delayed) == 3);
  CHECK(rig.count(Verdict::dropped) == 2);
  rig.link.flush();
  CHECK(rig.recorder->sent.size() == 3);
}

/// Takes all datagrams, without memory of its own.
class Sink final : public DatagramLink {
 public:
  SendResult send(std::span<const OutgoingDatagram> burst) override {
    return {burst.size(), SendStatus::ok, 0};
  }
  size_t receive(ReceiveBatch& batch) override {
    batch.clear();
    return 0;
  }
  size_t max_datagram(const Address&) override { return 1234; }
  Address local_address() const override { return Address::parse("192.0.2.9:9"); }
  int descriptor() const override { return -1; }
  uint64_t overflowed() const override { return 0; }
};

TEST_CASE("a datagram that there is no memory to hold back is dropped, and said to be") {
  const size_t failing = GENERATE(range(size_t{0}, size_t{40}));
  size_t told = 0;
  size_t dropped = 0;
  Impairment impairment = everything(3);
  impairment.drop = 0;
  impairment.delay = 1ms;
  ManualClock clock;
  ImpairedDatagramLink link(std::make_unique<Sink>(), impairment, clock,
                            [&](ConstBytes, Verdict what) {
                              ++told;
                              if (what == Verdict::dropped) ++dropped;
                            });
  const test::Burst burst = burst_of(kTo, test::numbered(100));
  {
    const test::FailingAllocation failure(failing, true);
    CHECK(link.send(burst.get()).sent == 100);
  }
  CHECK(told == 100);
  CHECK(dropped > 0);
  CHECK(link.queued() >= 100 - dropped);
  link.flush();
  const size_t before = dropped;
  CHECK(link.send(burst.get()).sent == 100);
  CHECK(dropped == before);
}

TEST_CASE("a datagram that finds no room meets the same fate when it comes again") {
  Rig free(everything(5));
  Rig tight(everything(5));
  free.send_numbered(300);
  tight.recorder->room = 0;
  size_t blocked = 0;
  for (size_t i = 0; i < 300;) {
    const SendResult result = test::send_one(tight.link, kTo, text_pattern(50, i));
    i += result.sent;
    if (result.status == SendStatus::would_block) ++blocked;
    // Room for the datagram and for all that it may release.
    tight.recorder->room = tight.recorder->room == 0 ? 5 : 0;
  }
  CHECK(blocked > 100);
  CHECK(tight.told == free.told);
}

TEST_CASE("held datagrams that find no room are kept, not lost") {
  Impairment impairment;
  impairment.delay = 1ms;
  Rig rig(impairment);
  rig.send_numbered(10);
  rig.recorder->room = 4;
  CHECK(rig.link.flush() == 6);
  rig.recorder->room = SIZE_MAX;
  rig.clock.advance(1ms);
  ReceiveBatch batch(1, 100, 1);
  rig.link.receive(batch);
  REQUIRE(rig.recorder->sent.size() == 10);
  for (size_t i = 0; i < 10; ++i) CHECK(rig.recorder->sent[i] == text_pattern(50, i));
}

TEST_CASE("a refusal of the inner link is passed on, and the sender can skip the datagram") {
  Impairment impairment;
  impairment.drop_if = drop_nth(3);
  Rig rig(impairment);
  const auto burst = burst_of(kTo, {"a", "refuse me", "b", "dropped", "c"});
  const SendResult result = rig.link.send(burst.get());
  CHECK(result.sent == 1);
  CHECK(result.status == SendStatus::refused);
  CHECK(result.error == EMSGSIZE);
  CHECK(rig.link.send(burst.get().subspan(2)).sent == 3);
  CHECK(rig.recorder->sent == std::vector<std::string>{"a", "b", "c"});
  CHECK(rig.told.size() == 4);
}

}  // namespace
}  // namespace diwarp::llp
