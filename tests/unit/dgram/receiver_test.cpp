// SPDX-License-Identifier: Apache-2.0

#include "dgram/receiver.h"
#include "support/catch.h"

using namespace diwarp::dgram;
using Arrival = Receiver::Arrival;
using Due = Receiver::Due;

namespace {
BufferedDatagram some;
ReorderBuffer buffer(1 << 20);
BufferShare share;
}  // namespace

TEST_CASE("rd receiver: datagrams in order are delivered, and acknowledged every second time") {
  Receiver receiver(8);
  CHECK(receiver.acknowledged() == 0);
  CHECK(receiver.arrived(1) == Arrival::next);
  receiver.delivered();
  CHECK(receiver.due() == Due::soon);
  CHECK(receiver.arrived(2) == Arrival::next);
  receiver.delivered();
  CHECK(receiver.due() == Due::now);
  CHECK(receiver.acknowledged() == 2);
  receiver.told(false);
  CHECK(receiver.due() == Due::nothing);
}

TEST_CASE("rd receiver: early ones are kept once, and told of in the map") {
  Receiver receiver(8);
  CHECK(receiver.arrived(3) == Arrival::early);
  CHECK(receiver.due() == Due::now);
  REQUIRE(receiver.keep(receiver.number(3), &some, buffer, share));
  CHECK(receiver.arrived(3) == Arrival::duplicate);
  CHECK(receiver.map().size() == 3);
  CHECK(receiver.map().test(2));
  CHECK_FALSE(receiver.map().test(0));
  CHECK(receiver.take_next() == nullptr);
  receiver.told(false);
  CHECK(receiver.due() == Due::now);  // data cannot tell the map
  receiver.told(true);
  CHECK(receiver.due() == Due::nothing);
  CHECK(receiver.arrived(1) == Arrival::next);
  receiver.delivered();
  CHECK(receiver.arrived(2) == Arrival::next);
  receiver.delivered();
  CHECK(receiver.take_next() == &some);
  receiver.delivered();
  CHECK(receiver.acknowledged() == 3);
  CHECK(receiver.map().size() == 0);
}

TEST_CASE("rd receiver: an old datagram is a duplicate, and one beyond the window is outside") {
  Receiver receiver(8);
  CHECK(receiver.arrived(0) == Arrival::duplicate);
  CHECK(receiver.arrived(8) == Arrival::early);
  CHECK(receiver.arrived(9) == Arrival::outside);
  CHECK(receiver.arrived(0x80000000) == Arrival::outside);
  CHECK(receiver.arrived(0x80000002) == Arrival::duplicate);
  CHECK(receiver.due() == Due::now);
}

TEST_CASE("rd receiver: the window's edge never moves back, whatever room there is") {
  Receiver receiver(8);
  CHECK(receiver.window(100) == 8);
  CHECK(receiver.window(0) == 8);
  for (uint32_t number = 1; number <= 4; ++number) {
    CHECK(receiver.arrived(number) == Arrival::next);
    receiver.delivered();
  }
  CHECK(receiver.window(0) == 4);  // to 8 as before
  CHECK(receiver.window(2) == 4);
  CHECK(receiver.window(6) == 6);
}

TEST_CASE("rd receiver: there is always a window of one") {
  Receiver receiver(8);
  CHECK(receiver.window(0) == 1);
}

TEST_CASE("rd receiver: datagrams that are kept are handed back at the end") {
  Receiver receiver(8);
  for (uint32_t number : {2U, 5U, 1U}) {
    receiver.arrived(number);
    REQUIRE(receiver.keep(receiver.number(number), &some, buffer, share));
  }
  CHECK(receiver.kept() == 3);
  int count = 0;
  while (receiver.take_any() != nullptr) ++count;
  CHECK(count == 3);
  receiver.release_memory(buffer, share);
}

TEST_CASE("rd receiver: its list counts to the buffer, and is given back") {
  constexpr size_t kList = 64 * sizeof(void*) + sizeof(uint64_t);  // and a bit for each place
  ReorderBuffer small(2 * kList);
  BufferShare mine;
  Receiver receiver(64);
  receiver.arrived(3);
  REQUIRE(receiver.keep(receiver.number(3), &some, small, mine));
  CHECK(small.used() == kList);
  Receiver another(64);
  another.arrived(3);
  CHECK_FALSE(another.keep(another.number(3), &some, small, mine));
  CHECK(receiver.take_any() == &some);
  receiver.release_memory(small, mine);
  CHECK(small.used() == 0);
  CHECK(mine.used == 0);
}

TEST_CASE("rd receiver: its list grows with the distance of what came early, and loses nothing") {
  ReorderBuffer large(1 << 20);
  BufferShare mine;
  Receiver receiver(4096, 1000);
  receiver.peer_told(4096);
  size_t before = 0;
  for (uint32_t number : {1003U, 1070U, 1500U, 1001U, 5095U}) {
    REQUIRE(receiver.arrived(number) == Arrival::early);
    REQUIRE(receiver.keep(receiver.number(number), &some, large, mine));
    CHECK(large.used() >= before);
    before = large.used();
    CHECK(receiver.arrived(number) == Arrival::duplicate);
    CHECK(receiver.map().test(number - 1000));
  }
  CHECK(receiver.map().size() == 4096);
  CHECK(receiver.arrived(1067) == Arrival::early);  // where 1003 was in a list of 64
  size_t told = 0;
  for (size_t bit = 0; bit < 4096; ++bit) told += receiver.map().test(bit);
  CHECK(told == 5);
  for (int i = 0; i < 5; ++i) CHECK(receiver.take_any() == &some);
  CHECK(receiver.take_any() == nullptr);
  receiver.release_memory(large, mine);
  CHECK(large.used() == 0);
}

TEST_CASE("rd receiver: where its list cannot grow, what is kept stays") {
  ReorderBuffer small(4 * (64 * sizeof(void*) + 8));
  BufferShare mine;
  Receiver receiver(4096);
  receiver.arrived(3);
  REQUIRE(receiver.keep(3, &some, small, mine));
  CHECK_FALSE(receiver.keep(4000, &some, small, mine));
  CHECK(receiver.kept() == 1);
  CHECK(receiver.map().size() == 3);
  CHECK(receiver.take_any() == &some);
  receiver.release_memory(small, mine);
}

TEST_CASE("rd receiver: what is left is handed out from the last one on") {
  BufferedDatagram others[3];
  Receiver receiver(8);
  for (uint32_t i = 0; i < 3; ++i) {
    REQUIRE(receiver.arrived(2 + 2 * i) == Arrival::early);
    REQUIRE(receiver.keep(2 + 2 * i, &others[i], buffer, share));
  }
  CHECK(receiver.take_any() == &others[2]);
  CHECK(receiver.map().size() == 4);
  CHECK(receiver.arrived(6) == Arrival::early);
  REQUIRE(receiver.keep(6, &some, buffer, share));
  CHECK(receiver.take_any() == &some);
  CHECK(receiver.take_any() == &others[1]);
  CHECK(receiver.take_any() == &others[0]);
  CHECK(receiver.take_any() == nullptr);
  CHECK(receiver.arrived(1) == Arrival::next);
  receiver.release_memory(buffer, share);
}

TEST_CASE(
    "rd receiver: an earlier version, which tells a window of 1,024, gets 16 words of a map") {
  ReorderBuffer large(1 << 20);
  BufferShare mine;
  Receiver receiver(4096);
  for (uint32_t number : {2U, 1024U, 1025U, 4096U}) {
    REQUIRE(receiver.arrived(number) == Arrival::early);
    REQUIRE(receiver.keep(number, &some, large, mine));
  }
  receiver.peer_told(1024);
  CHECK(receiver.map().count == 16);
  CHECK(receiver.map().size() == 1024);
  receiver.peer_told(1025);
  receiver.peer_told(0);
  CHECK(receiver.map().count == 64);
  while (receiver.take_any() != nullptr) continue;
  receiver.release_memory(large, mine);
}
