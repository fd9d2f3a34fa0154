// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_closing.h"

#include <algorithm>
#include <limits>
#include "support/catch.h"

#include "parts.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

using Step = RcClosing::Step;

/// Takes so many bytes, and counts how often its sending side was ended.
class EndedStream final : public llp::Stream {
 public:
  llp::IoResult send(std::span<const ConstBytes> pieces) override {
    size_t bytes = 0;
    for (const ConstBytes piece : pieces) bytes += piece.size();
    bytes = std::min(bytes, room);
    room -= bytes;
    if (bytes == 0) return {.status = llp::IoStatus::would_block};
    return {.bytes = bytes};
  }
  llp::IoResult send_zero_copy(std::span<const ConstBytes> pieces) override {
    ++calls;
    return send(pieces);
  }
  uint64_t zero_copy_calls() const override { return calls; }
  uint64_t zero_copy_released() override { return released; }
  llp::IoResult receive(Bytes) override { return {.status = llp::IoStatus::would_block}; }
  void shutdown_send() override { ++ended; }
  void abort() override {}
  size_t maximum_segment() const override { return 1460; }
  Address local_address() const override { return {}; }
  Address peer_address() const override { return {}; }

  size_t room = std::numeric_limits<size_t>::max();
  uint64_t calls = 0;
  uint64_t released = 0;
  int ended = 0;
};

struct Fixture : Memory {
  explicit Fixture(bool initiator = true, ReadyToReceive ready = ReadyToReceive::none) {
    requester.start(2);
    responder.start(2);
    transmit.start({.ready = ready}, initiator, {});
  }

  void post(WrOpcode opcode = WrOpcode::send) {
    REQUIRE_FALSE(sends.queue.post({.sges = sge(region, 0, 20), .opcode = opcode}));
  }
  RcTransmitContext context() {
    return {.sends = sends.queue,
            .requester = requester,
            .responder = responder,
            .stream = stream,
            .counters = counters,
            .protection = protection,
            .serves_sends = true,
            .burst_bytes = kBurstBytes,
            .zero_copy = zero_copy};
  }
  void run() { transmit.run(context(), kNow); }
  Step go_on(QpState state) { return closing.go_on(state, context(), transmit); }
  bool outlasts_peer(QpState state) const {
    return closing.outlasts_peer(state, transmit, requester);
  }
  /// The peer's answer to the Read that was posted.
  void answer() {
    REQUIRE_FALSE(requester.take_read_response({.opcode = rdmap::Opcode::read_response,
                                                .stag = region,
                                                .payload = bytes_of("twenty bytes of text")}));
  }
  void release() {
    stream.released = stream.calls;
    CHECK(transmit.zero_copy().complete_released(stream, sends.queue));
  }

  Sends sends;
  Counters counters;
  STag region = add(0, Canvas::kSize);
  RcRequester requester{protection, sends.queue};
  RcResponder responder{protection};
  RcTransmit transmit;
  EndedStream stream;
  bool zero_copy = false;
  RcClosing closing;
};

}  // namespace

TEST_CASE("rc closing: this side ends once, when what was posted is on the stream") {
  Fixture f;
  f.post();
  f.stream.room = 10;
  CHECK(f.go_on(QpState::closing) == Step::none);
  f.run();  // a part of it
  CHECK(f.go_on(QpState::closing) == Step::none);
  CHECK(f.stream.ended == 0);
  f.stream.room = 1000;
  f.run();
  CHECK(f.go_on(QpState::closing) == Step::none);
  CHECK(f.stream.ended == 1);
  CHECK(f.go_on(QpState::closing) == Step::none);
  CHECK(f.stream.ended == 1);
}

TEST_CASE("rc closing: a ready-to-receive message that waits for the stream keeps this side open") {
  Fixture f(true, ReadyToReceive::send);
  f.stream.room = 0;
  f.run();
  f.go_on(QpState::closing);
  CHECK(f.stream.ended == 0);
  f.stream.room = 1000;
  f.run();
  f.go_on(QpState::closing);
  CHECK(f.stream.ended == 1);
}

TEST_CASE("rc closing: a response that is awaited keeps this side open") {
  Fixture f;
  f.post(WrOpcode::rdma_read);
  f.run();
  CHECK(f.go_on(QpState::closing) == Step::none);
  CHECK(f.stream.ended == 0);
  f.answer();
  f.go_on(QpState::closing);
  CHECK(f.stream.ended == 1);
}

TEST_CASE("rc closing: a response that is pending keeps this side open") {
  Fixture f;
  REQUIRE_FALSE(f.responder.take(rdmap::ReadRequest{.length = 20, .source_stag = f.region}));
  f.go_on(QpState::closing);
  CHECK(f.stream.ended == 0);
  f.run();
  f.go_on(QpState::closing);
  CHECK(f.stream.ended == 1);
}

TEST_CASE("rc closing: memory in flight keeps this side open") {
  Fixture f;
  f.zero_copy = true;
  f.post();
  f.run();
  f.go_on(QpState::closing);
  CHECK(f.stream.ended == 0);
  f.release();
  f.go_on(QpState::closing);
  CHECK(f.stream.ended == 1);
}

TEST_CASE("rc closing: where the peer has ended its side, the connection ends with this one") {
  Fixture f;
  f.post();
  f.closing.set_peer_closed();
  CHECK(f.go_on(QpState::closing) == Step::none);
  f.run();
  CHECK(f.go_on(QpState::closing) == Step::end_connection);
  CHECK(f.stream.ended == 1);
}

TEST_CASE(
    "rc closing: after the peer's end a queue pair that does not close waits for its memory") {
  Fixture f;
  f.zero_copy = true;
  f.post();
  f.run();
  CHECK(f.go_on(QpState::rts) == Step::none);
  f.closing.set_peer_closed();
  CHECK(f.go_on(QpState::rts) == Step::none);
  f.release();
  CHECK(f.go_on(QpState::rts) == Step::end_connection);
  CHECK(f.stream.ended == 0);
}

TEST_CASE("rc closing: this side outlasts the peer's while it closes, until it has ended") {
  Fixture f;
  CHECK_FALSE(f.outlasts_peer(QpState::rts));
  CHECK(f.outlasts_peer(QpState::closing));
  f.go_on(QpState::closing);
  REQUIRE(f.stream.ended == 1);
  CHECK_FALSE(f.outlasts_peer(QpState::closing));
  f.closing.start();
  CHECK(f.outlasts_peer(QpState::closing));
}

TEST_CASE("rc closing: this side outlasts the peer's in any state while memory is in flight") {
  Fixture f;
  f.zero_copy = true;
  f.post();
  f.run();
  CHECK(f.outlasts_peer(QpState::rts));
  f.release();
  CHECK_FALSE(f.outlasts_peer(QpState::rts));
}

TEST_CASE("rc closing: where the peer has to answer, its end is the end") {
  Fixture f;
  f.post(WrOpcode::rdma_read);
  f.run();
  CHECK_FALSE(f.outlasts_peer(QpState::closing));
  f.answer();
  CHECK(f.outlasts_peer(QpState::closing));
}

TEST_CASE("rc closing: a responder that may not send has nothing to finish") {
  Fixture f(false);
  CHECK_FALSE(f.outlasts_peer(QpState::closing));
  f.transmit.messages().allow();
  CHECK(f.outlasts_peer(QpState::closing));
}

TEST_CASE("rc closing: that a send queue is drained is told once, and anew when it is asked for") {
  Fixture f;
  f.post(WrOpcode::rdma_read);
  f.run();
  CHECK(f.go_on(QpState::rts) == Step::none);
  CHECK(f.go_on(QpState::sqd) == Step::none);  // a response is awaited
  f.answer();
  CHECK(f.go_on(QpState::sqd) == Step::tell_drained);
  CHECK(f.go_on(QpState::sqd) == Step::none);
  f.closing.restart_drain();
  CHECK(f.go_on(QpState::sqd) == Step::tell_drained);
}

TEST_CASE("rc closing: a send queue is not drained before the stream has all of its message") {
  Fixture f;
  f.post();
  f.stream.room = GENERATE(size_t{0}, size_t{10});
  f.run();
  CHECK(f.go_on(QpState::sqd) == Step::none);
  f.stream.room = 1000;
  f.run();
  CHECK(f.go_on(QpState::sqd) == Step::tell_drained);
}
