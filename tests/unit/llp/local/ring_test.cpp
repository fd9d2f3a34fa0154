// SPDX-License-Identifier: Apache-2.0
// The ring of datagrams in shared memory: what one side puts the other one takes, and whatever
// either writes that it never should, the other one comes to no harm.
#include "llp/local/ring.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/random.h"
#include "support/catch.h"

namespace diwarp::llp {
namespace {

constexpr size_t kEntries = kLeastRing;

struct Ring {
  Bytes bytes() { return {memory.data(), ring_memory(kEntries)}; }
  std::atomic<uint64_t>& word(size_t offset) {
    return *reinterpret_cast<std::atomic<uint64_t>*>(memory.data() + sizeof(RingControl) + offset);
  }
  RingControl& control() { return *reinterpret_cast<RingControl*>(memory.data()); }

  bool put(ConstBytes datagram) {
    const std::array pieces = {datagram.first(datagram.size() / 2),
                               datagram.subspan(datagram.size() / 2)};
    return producer.put(pieces, datagram.size()) == RingStatus::ok;
  }
  RingStatus take() {
    const RingConsumer::Taken next = consumer.take(room);
    taken.assign(room.begin(), room.begin() + static_cast<ptrdiff_t>(next.length));
    return next.status;
  }

  struct Aligned {
    alignas(kCacheLine) std::array<std::byte, ring_memory(kEntries)> bytes{};
    std::byte* data() { return bytes.data(); }
  };
  std::unique_ptr<Aligned> owned = std::make_unique<Aligned>();
  Aligned& memory = *owned;
  RingProducer producer{bytes()};
  RingConsumer consumer{bytes()};
  std::vector<std::byte> room = std::vector<std::byte>(kMaxDatagram);
  std::vector<std::byte> taken;
};

std::vector<std::byte> numbered(size_t size, uint64_t number) {
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(number * 131 + i);
  return bytes;
}

TEST_CASE("datagrams of all sizes come out of a ring as they went in, many times around") {
  Ring ring;
  Random random(7);
  const std::array sizes = {size_t{0},  size_t{1},    size_t{55},   size_t{56},
                            size_t{57}, size_t{1428}, size_t{9000}, kMaxDatagram};
  for (uint64_t number = 0; number < 3000; ++number) {
    const size_t size =
        random.below(2) == 0 ? sizes[random.below(sizes.size())] : random.below(3000);
    const auto datagram = numbered(size, number);
    REQUIRE(ring.put(datagram));
    REQUIRE(ring.take() == RingStatus::ok);
    REQUIRE(ring.taken == datagram);
    CHECK(ring.take() == RingStatus::empty);
    ring.consumer.give_back();
  }
}

TEST_CASE("a ring holds datagrams until there is no room, and takes more once it is given back") {
  Ring ring;
  const auto datagram = numbered(1000, 1);
  size_t held = 0;
  while (ring.put(datagram)) ++held;
  // All but the lines that the next header and an entry at the end need.
  CHECK(held == (kEntries - 2 * kCacheLine) / entry_bytes(1000));
  CHECK(ring.producer.put({}, kMaxDatagram) == RingStatus::full);
  REQUIRE(ring.take() == RingStatus::ok);
  CHECK_FALSE(ring.put(datagram));
  ring.consumer.give_back();
  CHECK(ring.put(datagram));
  for (size_t i = 0; i < held; ++i) REQUIRE(ring.take() == RingStatus::ok);
  CHECK(ring.take() == RingStatus::empty);
}

TEST_CASE("a datagram stays in the ring while there is too little room for it") {
  Ring ring;
  REQUIRE(ring.put(numbered(100, 1)));
  CHECK(ring.consumer.take(Bytes(ring.room).first(99)).status == RingStatus::full);
  CHECK(ring.take() == RingStatus::ok);
  CHECK(ring.taken == numbered(100, 1));
}

TEST_CASE("old payload is never taken for an entry") {
  Ring ring;
  // Each word of the payload would be the header of a datagram of 8 bytes.
  const uint64_t looks_like_header = EntryHeader::of(EntryHeader::Kind::datagram, 8).word();
  std::vector<std::byte> payload(5000);
  for (size_t i = 0; i + 8 <= payload.size(); i += 8)
    std::memcpy(payload.data() + i, &looks_like_header, sizeof looks_like_header);
  Random random(11);
  for (int i = 0; i < 2000; ++i) {
    REQUIRE(ring.put(ConstBytes(payload).first(random.below(payload.size()))));
    REQUIRE(ring.take() == RingStatus::ok);
    REQUIRE(ring.take() == RingStatus::empty);
    ring.consumer.give_back();
  }
}

TEST_CASE("a ring that is read empty uses its first part alone, and one that is not all of it") {
  constexpr size_t kLarge = 4 * kLeastRing;
  struct alignas(kCacheLine) Line {
    std::array<std::byte, kCacheLine> bytes{};
  };
  std::vector<Line> lines(ring_memory(kLarge) / kCacheLine);
  const Bytes memory(lines.front().bytes.data(), ring_memory(kLarge));
  RingProducer producer(memory);
  RingConsumer consumer(memory);
  std::vector<std::byte> room(kMaxDatagram);
  const std::vector<std::byte> datagram(1000, std::byte{1});
  const ConstBytes piece(datagram);
  const auto used_behind = [&](size_t part) {
    const Bytes behind = memory.subspan(sizeof(RingControl) + part);
    return std::count(behind.begin(), behind.end(), std::byte{1});
  };
  for (int i = 0; i < 10'000; ++i) {
    REQUIRE(producer.put({&piece, 1}, piece.size()) == RingStatus::ok);
    REQUIRE(consumer.take(room).status == RingStatus::ok);
    consumer.give_back();
  }
  CHECK(used_behind(kLeastRing + kMaxDatagram) == 0);
  while (producer.put({&piece, 1}, piece.size()) == RingStatus::ok) {
  }
  CHECK(used_behind(kLarge - kMaxDatagram) != 0);
}

TEST_CASE("a datagram comes out of a ring as it went in, unsealed or not") {
  Ring ring;
  const auto kind = GENERATE(EntryHeader::Kind::datagram, EntryHeader::Kind::unsealed);
  const std::array bytes = {std::byte{1}, std::byte{2}, std::byte{3}};
  const ConstBytes piece(bytes);
  REQUIRE(ring.producer.put({&piece, 1}, piece.size(), kind) == RingStatus::ok);
  for (size_t part = 0; part < bytes.size(); ++part) {
    const RingConsumer::Taken taken = ring.consumer.take_some(Bytes(ring.room).first(1));
    CHECK(taken.status == RingStatus::ok);
    CHECK(taken.kind == kind);
    CHECK(ring.room[0] == bytes[part]);
  }
}

TEST_CASE("an entry that cannot be one breaks the ring, and is not read") {
  Ring ring;
  const uint64_t word = GENERATE(
      uint64_t{6}, uint64_t{0xFF}, ~uint64_t{0},
      EntryHeader::of(EntryHeader::Kind::datagram, kMaxDatagram + 1).word(),
      EntryHeader::of(EntryHeader::Kind::datagram, size_t{1} << 40).word(), uint64_t{1} << 63);
  ring.word(0).store(word);
  CHECK(ring.take() == RingStatus::broken);
}

TEST_CASE("an entry that would reach beyond the end of the ring breaks it") {
  Ring ring;
  while (ring.put(numbered(1000, 1))) {
    REQUIRE(ring.take() == RingStatus::ok);
    ring.consumer.give_back();
    const uint64_t header = EntryHeader::of(EntryHeader::Kind::datagram, kMaxDatagram).word();
    const size_t next = ring.control().consumed.load() % kEntries;
    if (kEntries - next >= entry_bytes(kMaxDatagram)) continue;
    ring.word(next).store(header);
    break;
  }
  CHECK(ring.take() == RingStatus::broken);
}

TEST_CASE("two skips in a row break a ring instead of leading around it for ever") {
  Ring ring;
  ring.word(0).store(EntryHeader::of(EntryHeader::Kind::skip, 0).word());
  CHECK(ring.take() == RingStatus::broken);
}

TEST_CASE(
    "a consumer that claims to have taken what was never put, or puts back, breaks the ring") {
  Ring ring;
  const auto datagram = numbered(1000, 1);
  for (int i = 0; i < 10; ++i) REQUIRE(ring.put(datagram));
  for (int i = 0; i < 5; ++i) REQUIRE(ring.take() == RingStatus::ok);
  ring.consumer.give_back();
  while (ring.put(datagram)) {
  }  // the producer has read it
  const uint64_t taken = ring.control().consumed.load();
  const uint64_t lie = GENERATE_REF(taken - 1024, taken + 32, uint64_t{1} << 40, ~uint64_t{0});
  ring.control().consumed.store(lie);
  CHECK(ring.producer.put({}, kMaxDatagram) == RingStatus::broken);
}

TEST_CASE("nothing more is put into a ring that its consumer has closed") {
  Ring ring;
  REQUIRE(ring.put(numbered(10, 1)));
  ring.consumer.close();
  CHECK(ring.producer.put({}, 0) == RingStatus::closed);
}

TEST_CASE("a consumer that sleeps is woken once") {
  Ring ring;
  CHECK_FALSE(ring.producer.must_wake());
  REQUIRE(ring.consumer.sleep());
  REQUIRE(ring.put(numbered(10, 1)));
  CHECK(ring.producer.must_wake());
  REQUIRE(ring.put(numbered(10, 2)));
  CHECK_FALSE(ring.producer.must_wake());
}

TEST_CASE("a consumer does not fall asleep while something waits") {
  Ring ring;
  REQUIRE(ring.put(numbered(10, 1)));
  CHECK_FALSE(ring.consumer.sleep());
  CHECK_FALSE(ring.producer.must_wake());
}

TEST_CASE("an entry of a stream's bytes is taken in parts of any size") {
  Ring ring;
  const auto bytes = numbered(1000, 1);
  REQUIRE(ring.put(bytes));
  REQUIRE(ring.put(numbered(10, 2)));
  std::vector<std::byte> came;
  for (const size_t size : {size_t{1}, size_t{600}, size_t{399}}) {
    std::vector<std::byte> part(size);
    const auto taken = ring.consumer.take_some(part);
    REQUIRE(taken.status == RingStatus::ok);
    REQUIRE(taken.length == size);
    CHECK(ring.consumer.something_waits());
    came.insert(came.end(), part.begin(), part.end());
  }
  CHECK(came == bytes);
  CHECK(ring.consumer.take_some(ring.room).length == 10);
  CHECK(ring.consumer.take_some(ring.room).status == RingStatus::empty);
}

TEST_CASE("what a header says later of an entry that is taken in parts changes nothing") {
  Ring ring;
  REQUIRE(ring.put(numbered(1000, 1)));
  std::vector<std::byte> part(10);
  REQUIRE(ring.consumer.take_some(part).length == 10);
  ring.word(0).store(EntryHeader::of(EntryHeader::Kind::datagram, kMaxDatagram).word());
  std::vector<std::byte> rest(2000);
  CHECK(ring.consumer.take_some(rest).length == 990);
}

TEST_CASE("there is always room for the entry that ends a ring") {
  Ring ring;
  const size_t size = GENERATE(size_t{0}, size_t{1}, size_t{1000}, size_t{30000}, kMaxDatagram);
  const auto bytes = numbered(size, 1);
  size_t held = 0;
  while (ring.put(bytes)) ++held;
  REQUIRE(ring.producer.put({}, 0, EntryHeader::Kind::end) == RingStatus::ok);
  for (size_t i = 0; i < held; ++i) REQUIRE(ring.take() == RingStatus::ok);
  const auto last = ring.consumer.take(ring.room);
  CHECK(last.status == RingStatus::ok);
  CHECK(last.kind == EntryHeader::Kind::end);
}

TEST_CASE("a producer that finds no room is told of some once") {
  Ring ring;
  const auto bytes = numbered(30000, 1);
  CHECK_FALSE(ring.producer.await_room(bytes.size()));
  CHECK_FALSE(ring.consumer.must_tell_room());
  while (ring.put(bytes)) {
  }
  REQUIRE(ring.producer.await_room(bytes.size()));
  for (int i = 0; i < 3; ++i) REQUIRE(ring.take() == RingStatus::ok);
  ring.consumer.give_back();
  CHECK(ring.consumer.must_tell_room());
  CHECK_FALSE(ring.consumer.must_tell_room());
  CHECK(ring.put(bytes));
}

TEST_CASE("used() tells whether something was put since it was asked") {
  Ring ring;
  CHECK_FALSE(ring.producer.used());
  REQUIRE(ring.put(numbered(10, 1)));
  CHECK(ring.producer.used());
  CHECK_FALSE(ring.producer.used());
}

}  // namespace
}  // namespace diwarp::llp
