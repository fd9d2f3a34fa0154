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
  ReorderBuffer small(2 * 64 * sizeof(void*));
  BufferShare mine;
  Receiver receiver(64);
  receiver.arrived(3);
  REQUIRE(receiver.keep(receiver.number(3), &some, small, mine));
  CHECK(small.used() == 64 * sizeof(void*));
  Receiver another(64);
  another.arrived(3);
  CHECK_FALSE(another.keep(another.number(3), &some, small, mine));
  CHECK(receiver.take_any() == &some);
  receiver.release_memory(small, mine);
  CHECK(small.used() == 0);
  CHECK(mine.used == 0);
}
