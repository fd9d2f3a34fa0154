// SPDX-License-Identifier: Apache-2.0
#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

/// A queue pair, and strangers who send it segments.
struct Scene {
  explicit Scene(const PartyOptions& options = {}) : target(device, options) {}

  uint64_t count(const char* counter) const { return device.counter(counter); }
  void send(Stranger& from, const Segment& segment) {
    from.send(target.address(), segment);
    world.settle();
  }
  /// One of two segments of 10 bytes each of a message of 20.
  Segment half(uint32_t msn, bool second) const {
    return {.msn = msn, .offset = second ? 10U : 0U, .last = second, .payload = pattern(10, msn)};
  }
  Segment whole(uint32_t msn, size_t size = 10) const {
    return {.msn = msn, .payload = pattern(size, msn)};
  }
  std::vector<uint64_t> received() {
    std::vector<uint64_t> ids;
    for (const WorkCompletion& completion : drain(target.recv_cq)) {
      CHECK(completion.status == WcStatus::success);
      ids.push_back(completion.wr_id);
    }
    return ids;
  }

  World world;
  Device& device = world.add_device();
  Party target;
  Stranger stranger{world};
};

using Ids = std::vector<uint64_t>;

}  // namespace

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

TEST_CASE("what was delivered is not touched by a later segment with other contents") {
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

TEST_CASE("a message that never becomes whole gives its receive back, to the head of the queue") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(4, 100);
  Stranger other(scene.world);
  scene.send(scene.stranger, scene.half(1, false));  // holds receive 0
  scene.send(other, scene.whole(1));
  CHECK(scene.received() == Ids{1});
  scene.world.advance(100ms - 1ns);
  CHECK(scene.count("message_timeouts") == 0);
  scene.world.advance(1ns);
  CHECK(scene.count("message_timeouts") == 1);
  CHECK(scene.target.qp.query().posted_receives == 3);
  scene.send(other, scene.whole(2));
  scene.send(other, scene.whole(3));
  CHECK(scene.received() == Ids{0, 2});
}

TEST_CASE("segments of a message that timed out are late, and not placed") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(100ms);
  const std::vector<std::byte> before = scene.target.memory;
  scene.send(scene.stranger, scene.half(1, true));
  scene.send(scene.stranger, scene.half(1, false));
  CHECK(scene.received().empty());
  CHECK(scene.count("drop_late") == 2);
  CHECK(scene.target.memory == before);
}

TEST_CASE("the timeout counts from the last new bytes, repeated ones do not prolong it") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(4, 100);
  const auto piece = [](uint32_t offset, bool last) {
    return Segment{.msn = 1, .offset = offset, .last = last, .payload = pattern(10, offset)};
  };
  scene.send(scene.stranger, piece(0, false));
  scene.world.advance(99ms);
  scene.send(scene.stranger, piece(10, false));
  scene.world.advance(99ms);
  scene.send(scene.stranger, piece(10, false));
  CHECK(scene.count("drop_duplicate") == 1);
  CHECK(scene.count("message_timeouts") == 0);
  scene.world.advance(1ms);
  CHECK(scene.count("message_timeouts") == 1);
  scene.send(scene.stranger, piece(20, true));
  CHECK(scene.received().empty());
}

TEST_CASE("of several open messages each has its own timeout") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(40ms);
  scene.send(scene.stranger, scene.half(2, false));
  scene.world.advance(40ms);
  scene.send(scene.stranger, scene.half(3, false));
  scene.world.advance(20ms);
  CHECK(scene.count("message_timeouts") == 1);
  scene.send(scene.stranger, scene.half(2, true));
  scene.world.advance(80ms);
  CHECK(scene.count("message_timeouts") == 2);
  CHECK(scene.received() == Ids{1});
}

TEST_CASE("a message that goes on does not keep another one alive") {
  Scene scene({.datagram = {.message_timeout = 100ms}});
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(scene.stranger, scene.half(2, false));
  scene.world.advance(60ms);
  scene.send(scene.stranger, {.msn = 1, .offset = 10, .last = false, .payload = pattern(10, 1)});
  scene.world.advance(60ms);
  CHECK(scene.count("message_timeouts") == 1);
  scene.send(scene.stranger, scene.half(2, true));
  CHECK(scene.count("drop_late") == 1);
  scene.send(scene.stranger, {.msn = 1, .offset = 20, .last = true, .payload = {}});
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("a message timeout without end never comes, and costs no steps") {
  Scene scene({.datagram = {.message_timeout = Duration::max()}});
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(24h);
  CHECK(scene.device.progress() == 0);
  CHECK(scene.count("message_timeouts") == 0);
  scene.send(scene.stranger, scene.half(1, true));
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("incomplete messages hold at most half of the receives") {
  Scene scene;
  scene.target.post_receives(8, 100);
  std::deque<Stranger> strangers;
  for (int i = 0; i < 5; ++i) strangers.emplace_back(scene.world);
  for (Stranger& stranger : strangers) scene.send(stranger, scene.half(1, false));
  CHECK(scene.count("drop_share") == 1);
  // Messages of one segment may use the other half.
  Stranger other(scene.world);
  for (uint32_t msn = 0; msn < 4; ++msn) scene.send(other, scene.whole(msn));
  CHECK(scene.received() == Ids{4, 5, 6, 7});
  CHECK(scene.count("drop_share") == 1);
  // What was refused finds room as soon as one of the others is whole.
  REQUIRE_FALSE(scene.target.post_recv(8, 0, 100));
  scene.send(strangers[0], scene.half(1, true));
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("a single posted receive may be held by an incomplete message") {
  Scene scene;
  scene.target.post_receives(1, 100);
  scene.send(scene.stranger, scene.half(1, true));
  scene.send(scene.stranger, scene.half(1, false));
  CHECK(scene.received() == Ids{0});
}

TEST_CASE("one source cannot hold more than its share, another gets through") {
  Scene scene({.datagram = {.max_open_per_source = 2}});
  scene.target.post_receives(64, 100);
  for (uint32_t msn = 0; msn < 10; ++msn) scene.send(scene.stranger, scene.half(msn, false));
  CHECK(scene.count("drop_share") == 8);
  Stranger honest(scene.world);
  scene.send(honest, scene.half(1, false));
  scene.send(honest, scene.half(1, true));
  CHECK(scene.received() == Ids{2});
  CHECK(scene.count("drop_share") == 8);
  // Its single segments are not held up by its own open messages.
  scene.send(scene.stranger, scene.whole(100));
  CHECK(scene.received() == Ids{3});
}

TEST_CASE("no more messages are open than the queue pair allows") {
  Scene scene({.datagram = {.max_open_messages = 3}});
  scene.target.post_receives(64, 100);
  for (uint32_t msn = 0; msn < 5; ++msn) scene.send(scene.stranger, scene.half(msn, false));
  CHECK(scene.count("drop_no_context") == 2);
  for (uint32_t msn = 0; msn < 3; ++msn) scene.send(scene.stranger, scene.half(msn, true));
  CHECK(scene.received() == Ids{0, 1, 2});
  for (uint32_t msn = 10; msn < 13; ++msn) {
    scene.send(scene.stranger, scene.half(msn, false));
    scene.send(scene.stranger, scene.half(msn, true));
  }
  CHECK(scene.received() == Ids{3, 4, 5});
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

TEST_CASE("without a posted receive messages are dropped, counted and not remembered") {
  Scene scene;
  scene.send(scene.stranger, scene.whole(1));
  scene.send(scene.stranger, scene.half(2, false));
  CHECK(scene.count("drop_no_receive") == 2);
  scene.target.post_receives(4, 100);
  scene.send(scene.stranger, scene.whole(1));
  scene.send(scene.stranger, scene.half(2, false));
  scene.send(scene.stranger, scene.half(2, true));
  CHECK(scene.received() == Ids{0, 1});
}

TEST_CASE("a restarted peer is a new peer: its messages are delivered again") {
  Scene scene;
  scene.target.post_receives(4, 100);
  Segment segment = scene.whole(1);
  scene.send(scene.stranger, segment);
  scene.send(scene.stranger, segment);
  CHECK(scene.received() == Ids{0});
  segment.incarnation = 2;
  scene.send(scene.stranger, segment);
  CHECK(scene.received() == Ids{1});
}

TEST_CASE("a segment of the peer's old life does not complete a message of its new one") {
  Scene scene;
  scene.target.post_receives(8, 100);
  Segment first = scene.half(1, false);
  Segment second = scene.half(1, true);
  second.incarnation = 2;
  scene.send(scene.stranger, first);
  scene.send(scene.stranger, second);
  CHECK(scene.received().empty());
}

TEST_CASE("a queue pair that is reset and brought back is a new peer") {
  World world;
  Party a(world.add_device());
  Party b(world.add_device());
  b.post_receives(8, 100);
  REQUIRE_FALSE(a.send(b.address(), 0, 10));
  world.settle();
  for (int life = 0; life < 3; ++life) {
    a.qp.modify(QpState::reset);
    a.qp.modify(QpState::init);
    a.qp.modify(QpState::rts);
    REQUIRE_FALSE(a.send(b.address(), 0, 10));
    world.settle();
  }
  CHECK(drain(b.recv_cq).size() == 4);
}

TEST_CASE("sources that differ in address or port alone are kept apart") {
  Scene scene;
  scene.target.post_receives(8, 100);
  Stranger other(scene.world);
  REQUIRE(other.address().host() == scene.stranger.address().host());
  scene.send(scene.stranger, scene.half(1, false));
  scene.send(other, scene.half(1, true));
  CHECK(scene.received().empty());
  scene.send(other, scene.whole(2));
  scene.send(scene.stranger, scene.whole(2));
  CHECK(scene.received() == Ids{2, 3});
}

TEST_CASE("an open message is completed however many later ones its source has ended meanwhile") {
  // Only the newest 1,024 ended ones are remembered; what is older counts as ended, unless it is
  // open.
  Scene scene;
  scene.target.post_receives(64, 100);
  scene.send(scene.stranger, scene.half(0, false));  // holds receive 0
  for (uint32_t msn = 2; msn < 3000; ++msn) {
    scene.send(scene.stranger, scene.whole(msn));
    for (uint64_t id : scene.received()) REQUIRE_FALSE(scene.target.post_recv(id, id * 100, 100));
  }
  scene.send(scene.stranger, scene.whole(1));  // never seen, but too old to tell
  CHECK(scene.count("drop_late") == 1);
  scene.send(scene.stranger, scene.half(0, true));
  CHECK(scene.received() == Ids{0});
  scene.send(scene.stranger, scene.half(0, true));
  CHECK(scene.count("drop_late") == 2);
}

TEST_CASE("the source that was silent longest makes room for a new one, unless a message is open") {
  Scene scene({.datagram = {.max_sources = 2}});
  scene.target.post_receives(32, 100);
  Stranger second(scene.world);
  Stranger third(scene.world);
  scene.send(scene.stranger, scene.whole(1));
  scene.send(second, scene.whole(1));
  scene.send(scene.stranger, scene.whole(2));  // now `second` is the silent one
  scene.send(third, scene.whole(1));           // takes its place
  CHECK(scene.received().size() == 4);
  scene.send(scene.stranger, scene.whole(2));
  CHECK(scene.count("drop_late") == 1);  // still known
  scene.send(second, scene.whole(1));    // forgotten: looks new, and `third` goes
  CHECK(scene.received().size() == 1);

  scene.send(scene.stranger, scene.half(10, false));
  scene.send(second, scene.half(10, false));
  scene.send(third, scene.whole(9));
  CHECK(scene.count("drop_sources_full") == 1);
  scene.send(second, scene.half(10, true));
  CHECK(scene.received().size() == 1);
  scene.send(third, scene.whole(9));
  CHECK(scene.received().size() == 1);
  scene.send(scene.stranger, scene.half(10, true));  // its open message was spared
  CHECK(scene.received().size() == 1);
}

TEST_CASE("a source that was silent for a minute is forgotten") {
  Scene scene;
  scene.target.post_receives(8, 100);
  Stranger other(scene.world);
  scene.send(scene.stranger, scene.whole(1));
  scene.world.advance(59s);
  scene.send(other, scene.whole(1));
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.count("drop_late") == 1);
  scene.world.advance(60s);
  Stranger third(scene.world);
  scene.send(third, scene.whole(1));
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.count("drop_late") == 1);
  CHECK(scene.received().size() == 4);
}

TEST_CASE("a source with an open message is not forgotten, however long it is silent") {
  Scene scene({.datagram = {.message_timeout = 200s}});
  scene.target.post_receives(8, 100);
  scene.send(scene.stranger, scene.half(1, false));
  scene.world.advance(61s);
  Stranger other(scene.world);
  scene.send(other, scene.whole(1));
  scene.send(scene.stranger, scene.half(1, true));
  CHECK(scene.received() == Ids{1, 0});
}

TEST_CASE("a queue pair that was reset has forgotten what it received before") {
  Scene scene;
  scene.target.post_receives(2, 100);
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.received() == Ids{0});
  scene.target.qp.modify(QpState::reset);
  scene.target.qp.modify(QpState::init);
  scene.target.qp.modify(QpState::rts);
  scene.target.post_receives(2, 100);
  scene.send(scene.stranger, scene.whole(1));
  CHECK(scene.received() == Ids{0});
}
