// SPDX-License-Identifier: Apache-2.0
#include "stack/ud_scene.h"

using namespace diwarp;
using namespace diwarp::test;

TEST_CASE("the segments of a message may come in any order") {
  const auto message = pattern(50, 1);
  const std::array<size_t, 6> cuts = {0, 10, 11, 30, 49, 50};
  std::array<size_t, 5> order = {0, 1, 2, 3, 4};
  Scene scene;
  uint32_t msn = 0xFFFFFFF0;  // MSNs wrap on the way
  do {
    std::fill_n(scene.target.memory.begin(), 60, std::byte{0});
    REQUIRE_FALSE(scene.target.post_recv(msn, 0, 60));
    REQUIRE_FALSE(scene.target.post_recv(0, 0, 0));  // at most half may be held
    for (size_t place = 0; place < order.size(); ++place) {
      CHECK(scene.received().empty());
      const size_t which = order[place];
      const std::vector<std::byte> payload(
          message.begin() + static_cast<ptrdiff_t>(cuts[which]),
          message.begin() + static_cast<ptrdiff_t>(cuts[which + 1]));
      scene.send(scene.stranger, {.msn = msn,
                                  .offset = static_cast<uint32_t>(cuts[which]),
                                  .last = which + 2 == cuts.size(),
                                  .payload = payload});
    }
    const auto completions = drain(scene.target.recv_cq);
    REQUIRE(completions.size() == 1);
    REQUIRE(completions[0].wr_id == msn);
    REQUIRE(completions[0].byte_count == 50);
    REQUIRE(completions[0].source == scene.stranger.address());
    REQUIRE(same(scene.target.bytes(0, 50), message));
    REQUIRE(scene.target.memory[50] == std::byte{0});
    // The empty receive is used up by an empty message.
    scene.send(scene.stranger, {.msn = msn + 1, .payload = {}});
    REQUIRE(scene.received() == Ids{0});
    msn += 2;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(drops(scene.device) == 0);
}

TEST_CASE("a message is delivered once, however often its datagrams come") {
  Scene scene;
  scene.target.post_receives(10, 100);
  for (int i = 0; i < 3; ++i) scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.received() == Ids{0});
  CHECK(scene.count("drop_late") == 2);

  for (int i = 0; i < 3; ++i) scene.send(scene.stranger, scene.half(2, false));
  CHECK(scene.count("drop_duplicate") == 2);
  CHECK(scene.received().empty());
  for (int i = 0; i < 3; ++i) scene.send(scene.stranger, scene.half(2, true));
  CHECK(scene.received() == Ids{1});
  CHECK(scene.count("drop_late") == 4);
  scene.send(scene.stranger, scene.half(2, false));
  CHECK(scene.count("drop_late") == 5);
  CHECK(scene.received().empty());
}

TEST_CASE("a delivered message is not touched by a later segment with other contents") {
  Scene scene;
  scene.target.post_receives(10, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(scene.stranger, scene.half(1, true));
  REQUIRE(scene.received() == Ids{0});
  const std::vector<std::byte> before = scene.target.memory;
  Segment forged = scene.half(1, true);
  forged.payload = pattern(10, 77);
  scene.send(scene.stranger, forged);
  forged = scene.whole(1, 20);
  scene.send(scene.stranger, forged);
  CHECK(scene.target.memory == before);
  CHECK(scene.count("drop_late") == 2);
  CHECK(scene.received().empty());
}

TEST_CASE("a segment that contradicts its message is dropped, and the message becomes whole") {
  Scene scene;
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, {.msn = 1, .offset = 10, .last = false, .payload = pattern(10, 1)});
  SECTION("another end, before bytes that are there") {
    scene.send(scene.stranger, {.msn = 1, .offset = 0, .last = true, .payload = pattern(10, 2)});
  }
  SECTION("a solicited one among others") {
    scene.send(
        scene.stranger,
        {.msn = 1, .offset = 0, .last = false, .solicited = true, .payload = pattern(10, 2)});
  }
  SECTION("some bytes that are there and some that are not") {
    scene.send(scene.stranger, {.msn = 1, .offset = 5, .last = false, .payload = pattern(10, 2)});
  }
  SECTION("the same bytes, now as the last ones") {
    scene.send(scene.stranger, {.msn = 1, .offset = 10, .last = true, .payload = pattern(10, 2)});
  }
  SECTION("bytes behind the end, and a second end") {
    scene.send(scene.stranger, {.msn = 1, .offset = 20, .last = true, .payload = pattern(10, 3)});
    CHECK(scene.count("drop_contradiction") == 0);
    scene.send(scene.stranger, {.msn = 1, .offset = 30, .last = false, .payload = pattern(1, 2)});
    CHECK(scene.count("drop_contradiction") == 1);
    scene.send(scene.stranger, {.msn = 1, .offset = 20, .last = true, .payload = pattern(9, 2)});
    CHECK(scene.count("drop_contradiction") == 2);
    scene.send(scene.stranger, {.msn = 1, .offset = 0, .last = false, .payload = pattern(10, 4)});
    CHECK(scene.received() == Ids{0});
    return;
  }
  CHECK(scene.count("drop_contradiction") == 1);
  CHECK(scene.received().empty());
  scene.send(scene.stranger, {.msn = 1, .offset = 0, .last = false, .payload = pattern(10, 4)});
  scene.send(scene.stranger, {.msn = 1, .offset = 20, .last = true, .payload = pattern(10, 3)});
  CHECK(scene.received() == Ids{0});
  CHECK(same(scene.target.bytes(0, 10), pattern(10, 4)));
  CHECK(same(scene.target.bytes(10, 10), pattern(10, 1)));
  CHECK(same(scene.target.bytes(20, 10), pattern(10, 3)));
}

TEST_CASE("a segment without bytes may end a message, and one that tells nothing is a duplicate") {
  Scene scene;
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, {.msn = 1, .offset = 0, .last = false, .payload = pattern(10, 1)});
  scene.send(scene.stranger, {.msn = 1, .offset = 3, .last = false, .payload = {}});
  CHECK(scene.count("drop_duplicate") == 1);
  CHECK(scene.received().empty());
  scene.send(scene.stranger, {.msn = 1, .offset = 10, .last = true, .payload = {}});
  const auto completions = drain(scene.target.recv_cq);
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].byte_count == 10);
}

TEST_CASE("a message with too many gaps loses segments, not itself") {
  Scene scene;
  scene.target.post_receives(2, 2000);
  const auto byte_at = [](uint32_t offset) {
    return Segment{
        .msn = 1, .offset = offset, .last = offset == 599, .payload = pattern(1, offset)};
  };
  for (uint32_t offset = 1; offset < 600; offset += 2)
    scene.send(scene.stranger, byte_at(offset));  // 300 ranges
  CHECK(scene.count("drop_range_limit") == 300 - 256);
  CHECK(scene.received().empty());
  for (uint32_t offset = 0; offset < 600; ++offset) scene.send(scene.stranger, byte_at(offset));
  CHECK(scene.received() == Ids{0});
  for (uint32_t offset = 0; offset < 600; ++offset)
    REQUIRE(scene.target.memory[offset] == pattern(1, offset)[0]);
}

TEST_CASE("a message longer than its receive is dropped, and the next one uses the receive") {
  Scene scene;
  scene.target.post_receives(3, 100);
  const std::vector<std::byte> before = scene.target.memory;
  SECTION("of one segment") {
    scene.send(scene.stranger, scene.whole(1, 101));
    CHECK(scene.count("drop_receive_too_small") == 1);
    scene.send(scene.stranger, scene.whole(1, 101));
    CHECK(scene.count("drop_receive_too_small") + scene.count("drop_late") == 2);
  }
  SECTION("of one segment, beside an open message") {
    scene.send(scene.stranger, scene.half(7, false));
    scene.send(scene.stranger, scene.whole(1, 101));
    CHECK(scene.count("drop_receive_too_small") == 1);
    scene.send(scene.stranger, scene.half(7, true));
    CHECK(scene.received() == Ids{0});
    scene.send(scene.stranger, scene.whole(2, 100));
    CHECK(scene.received() == Ids{1});
    return;
  }
  SECTION("of several segments, the one that shows it first") {
    scene.send(scene.stranger, {.msn = 1, .offset = 91, .last = true, .payload = pattern(10, 1)});
    CHECK(scene.count("drop_receive_too_small") == 1);
    CHECK(scene.target.memory == before);
    scene.send(scene.stranger, {.msn = 1, .offset = 0, .last = false, .payload = pattern(91, 1)});
    CHECK(scene.count("drop_late") == 1);
    CHECK(scene.target.memory == before);
  }
  SECTION("of several segments, the one that shows it last") {
    scene.send(scene.stranger, {.msn = 1, .offset = 0, .last = false, .payload = pattern(91, 1)});
    scene.send(scene.stranger, {.msn = 1, .offset = 91, .last = true, .payload = pattern(10, 1)});
    CHECK(scene.count("drop_receive_too_small") == 1);
    CHECK(scene.target.memory[100] == before[100]);
  }
  SECTION("of several segments, by far") {
    scene.send(scene.stranger,
               {.msn = 1, .offset = (1U << 30) - 10, .last = true, .payload = pattern(10, 1)});
    CHECK(scene.count("drop_receive_too_small") == 1);
  }
  CHECK(scene.received().empty());
  CHECK(scene.target.qp.query().posted_receives == 3);
  scene.send(scene.stranger, scene.whole(2, 100));
  CHECK(scene.received() == Ids{0});
  CHECK(same(scene.target.bytes(0, 100), pattern(100, 2)));
}

TEST_CASE("a message that exactly fills its receive is delivered") {
  Scene scene;
  scene.target.post_receives(2, 20);
  scene.send(scene.stranger, scene.whole(1, 20));
  scene.send(scene.stranger, scene.half(2, true));
  scene.send(scene.stranger, scene.half(2, false));
  CHECK(scene.received() == Ids{0, 1});
}
