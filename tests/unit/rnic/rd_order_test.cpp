// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_order.h"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "rd_receiving.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

using dgram::RdKind;
using Segment = rdmap::DatagramSegment;

struct Fixture : Receiving {
  explicit Fixture(size_t memory = size_t{1} << 20) : buffer(memory) {}
  ~Fixture() {
    peers.table.for_each([this](RdPeer& one) {
      while (auto* const kept = one.receiver().take_any()) buffer.release(kept, one.host.buffered);
    });
  }

  void arrive(RdPeer& from, uint32_t sequence, const Segment& segment) {
    arrive(from, sequence, RdKind::data, rdmap::flags_of(segment), body_of(segment));
  }
  void arrive(RdPeer& from, uint32_t sequence, RdKind kind, uint8_t flags, ConstBytes bytes) {
    dgram::ParsedRdHeader parsed;
    parsed.header.kind = kind;
    parsed.header.sequence = sequence;
    parsed.rest = bytes;
    order.take_sequenced(from, parsed, flags, now);
  }
  void arrive_skip(RdPeer& from, uint32_t sequence, const dgram::MessageName& message) {
    std::array<std::byte, dgram::kRdSkipBytes> bytes;
    dgram::encode_rd_skip(message, bytes);
    arrive(from, sequence, RdKind::skip, 0, bytes);
  }
  /// A Read Request that names no region.
  void guess(RdPeer& from, uint32_t sequence) {
    arrive(
        from, sequence,
        rdmap::request_segment(sequence, {.sink_stag = sequence, .length = 1, .source_stag = 7}));
  }
  void post_places(uint64_t count) {
    for (uint64_t id = 1; id <= count; ++id) post(id, id * 10, 10);
  }
  /// The contents of the Sends that are reported now, in that order.
  std::string taken() {
    std::string all;
    for (const WorkCompletion& done : reported())
      all.append(reinterpret_cast<const char*>(canvas.at(done.wr_id * 10)), done.byte_count);
    return all;
  }

  dgram::ReorderBuffer buffer;
  CountingWaker waker;
  RdOrder order{receives.buffers, records, peers.table, requests, delivery, buffer, logged, waker};
};

}  // namespace

TEST_CASE("rd order: a datagram that comes early waits for those before it") {
  Fixture f;
  f.post_places(3);
  f.arrive(f.peer, 3, whole(3, "c"));
  f.arrive(f.peer, 2, whole(2, "b"));
  CHECK(f.taken().empty());
  CHECK(f.peer.receiver().kept() == 2);
  CHECK(f.peer.lacks_next());
  f.arrive(f.peer, 1, whole(1, "a"));
  CHECK(f.taken() == "abc");
  CHECK(f.peer.receiver().kept() == 0);
}

TEST_CASE("rd order: a datagram is delivered once, however often it comes") {
  Fixture f;
  f.post_places(4);
  f.arrive(f.peer, 2, whole(2, "b"));
  f.arrive(f.peer, 2, whole(2, "b"));  // kept
  f.arrive(f.peer, 1, whole(1, "a"));
  f.arrive(f.peer, 1, whole(1, "a"));  // delivered
  CHECK(f.taken() == "ab");
  CHECK(f.counters.get(Counter::drop_duplicate) == 2);
  f.arrive(f.peer, 3 + dgram::Receiver::kMaxWindow, whole(9, "z"));
  CHECK(f.counters.get(Counter::drop_rd_window) == 1);
  CHECK(f.taken().empty());
}

TEST_CASE("rd order: a datagram that came early is dropped where there is no memory to keep it") {
  Fixture f(0);
  f.post_places(2);
  f.arrive(f.peer, 2, whole(2, "b"));
  CHECK(f.counters.get(Counter::drop_no_context) == 1);
  f.arrive(f.peer, 1, whole(1, "a"));
  CHECK(f.taken() == "a");
  f.arrive(f.peer, 2, whole(2, "b"));
  CHECK(f.taken() == "b");
}

TEST_CASE("rd order: peers whose Sends wait for a receive go on in the order in which they came") {
  Fixture f;
  RdPeer& second = f.peers.add("10.0.0.2");
  f.arrive(f.peer, 1, whole(1, "a"));
  f.arrive(second, 1, whole(1, "b"));
  f.arrive(f.peer, 2, whole(2, "c"));
  CHECK(f.counters.get(Counter::rd_held) == 2);
  CHECK(f.peer.turn.held());
  CHECK_FALSE(f.peer.lacks_next());  // it is this side that is not ready
  f.order.resume_held(f.now);
  CHECK(f.taken().empty());
  f.post(1, 10, 10);
  f.order.resume_held(f.now);
  CHECK(f.taken() == "a");
  f.post(2, 20, 10);
  f.order.resume_held(f.now);
  CHECK(f.taken() == "b");  // the first peer stands behind it now
  CHECK_FALSE(second.turn.held());
  f.post(3, 30, 10);
  f.order.resume_held(f.now);
  CHECK(f.taken() == "c");
  CHECK(f.peers.table.without_receive.empty());
}

TEST_CASE("rd order: a receive that was posted just before a peer is held is not overlooked") {
  Fixture f;
  f.arrive(f.peer, 1, whole(1, "a"));
  CHECK(f.waker.woken == 0);  // the next receive will wake it
  f.post(1, 10, 10);
  RdPeer& second = f.peers.add("10.0.0.2");
  f.arrive(second, 1, whole(1, "b"));
  CHECK(f.taken() == "b");
  f.arrive(second, 2, whole(2, "c"));
  CHECK(second.turn.held());
  f.post(2, 20, 10);
  f.order.resume_held(f.now);
  CHECK(f.taken() == "a");
  CHECK(second.turn.held());
}

TEST_CASE("rd order: after a refusal nothing is delivered until the peer has skipped the message") {
  Fixture f;
  f.post_places(2);
  Segment wrong = whole(1, "a");
  ++wrong.q_key;
  f.arrive(f.peer, 1, wrong);
  CHECK(f.peer.turn.refusing());
  f.arrive(f.peer, 1, whole(1, "a"));
  f.arrive(f.peer, 2, whole(2, "b"));
  CHECK(f.peer.receiver().next() == 1);
  CHECK(f.taken().empty());
  f.arrive_skip(f.peer, 1, {dgram::MessageKind::send, 1});
  CHECK_FALSE(f.peer.turn.refusing());
  CHECK(f.taken() == "b");
}

TEST_CASE("rd order: a peer that guessed too often is not listened to before the second is over") {
  Fixture f;
  f.post_places(1);
  for (uint32_t sequence = 1; sequence <= 2; ++sequence) {
    f.guess(f.peer, sequence);
    REQUIRE(f.peer.turn.refusing());
    f.arrive_skip(f.peer, sequence, {dgram::MessageKind::read_request, sequence});
  }
  f.guess(f.peer, 3);
  CHECK(f.peer.turn.held());
  const Time at = f.peer.turn.retry_at();
  CHECK(at > f.now);
  CHECK(at <= f.now + 1s);
  CHECK(f.peers.table.without_stag_pass.empty());  // the limit is its own
  f.arrive(f.peer, 4, whole(1, "a"));
  CHECK(f.taken().empty());
  f.order.retry(f.peer, f.now);
  CHECK(f.peer.turn.held());
  f.now = at;
  f.order.retry(f.peer, f.now);
  CHECK(f.peer.turn.refusing());
  f.arrive_skip(f.peer, 3, {dgram::MessageKind::read_request, 3});
  CHECK(f.taken() == "a");
}
