// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_idle_memory.h"

#include <chrono>
#include <memory>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "recorded_stream.h"
#include "rnic/engine/attach.h"
#include "rnic/rc/partial_fpdu_buffer.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

/// Keeps memory of its own for so many looks at it.
struct KeepingStream final : RecordedStream {
  using RecordedStream::RecordedStream;
  bool trim() override {
    ++looks;
    return looks < keeps_for;
  }

  int looks = 0;
  int keeps_for = 0;
};

struct Fixture : Memory {
  Fixture() {
    stream.attach_none();
    requester.start(2);
    responder.start(2);
    transmit.start({}, true, {});
    receive.start({}, true, {});
  }
  ~Fixture() {
    idle_memory.stop();
    detach_endpoint(host.engine(), endpoint);
  }

  KeepingStream& attach() {
    auto made = std::make_unique<KeepingStream>(history);
    KeepingStream& attached = *made;
    stream.attach(std::move(made));
    return attached;
  }
  void send() {
    REQUIRE_FALSE(sends.queue.post({.sges = sge(region, 0, 3)}));
    transmit.run(
        {sends.queue, requester, responder, sink, counters, protection, true, kBurstBytes, false},
        now);
    sends.statuses();
  }
  /// A stream begins of which the first bytes of a long FPDU came.
  void receive_part() {
    std::vector<std::byte> begun(2 * kIdlePartialFpdu);
    begun[0] = std::byte{0xF0};
    receive.start({}, true, begun);
  }
  void use() { idle_memory.used(now); }
  void pass(Duration time) {
    now += time;
    timers.run(now);
  }

  Time now = kNow;
  Counters counters;
  Receives receives;
  Sends sends;
  STag region = add(0, Canvas::kSize);
  RcRequester requester{protection, sends.queue};
  RcResponder responder{protection};
  History history;
  RecordedStream sink{history};
  ManualClock clock{kNow};
  Host host{clock};
  CountingEndpoint endpoint;
  TimerQueue timers;
  RcReceive receive{
      {receives.buffers, protection, requester, responder}, counters, ReceiveNotReady::hold};
  RcTransmit transmit;
  RcStream stream{host, endpoint};
  RcIdleMemory idle_memory{timers, receive, transmit, stream};
};

}  // namespace

TEST_CASE("rc idle memory: a queue pair that keeps no memory is not looked at") {
  Fixture f;
  f.use();
  CHECK(f.timers.empty());
}

TEST_CASE("rc idle memory: what was kept to send is freed after a time without use") {
  Fixture f;
  f.send();
  f.use();
  REQUIRE(f.timers.next() == kNow + kTrimAfter);
  f.pass(kTrimAfter);
  CHECK(f.transmit.keeps_memory());  // it was used within that time
  CHECK(f.timers.next() == f.now + kTrimAfter);
  f.pass(kTrimAfter);
  CHECK_FALSE(f.transmit.keeps_memory());
  CHECK(f.timers.empty());
}

TEST_CASE("rc idle memory: memory that is used again stays") {
  Fixture f;
  for (int second = 0; second < 3; ++second) {
    f.send();
    f.use();
    f.pass(kTrimAfter);
    CHECK(f.transmit.keeps_memory());
  }
  f.pass(kTrimAfter);
  CHECK_FALSE(f.transmit.keeps_memory());
  f.send();
  f.use();
  CHECK(f.timers.next() == f.now + kTrimAfter);
}

TEST_CASE("rc idle memory: further use does not put off the next look") {
  Fixture f;
  f.send();
  f.use();
  f.pass(kTrimAfter / 2);
  f.send();
  f.use();
  CHECK(f.timers.next() == kNow + kTrimAfter);
  CHECK(f.timers.size() == 1);
}

TEST_CASE("rc idle memory: what an unfinished FPDU needs is freed when that is gone") {
  Fixture f;
  f.receive_part();
  f.use();
  for (int second = 0; second < 3; ++second) f.pass(kTrimAfter);
  CHECK(f.receive.keeps_memory());
  f.receive.start({}, true, {});
  f.pass(kTrimAfter);
  CHECK(f.receive.keeps_memory());
  f.pass(kTrimAfter);
  CHECK_FALSE(f.receive.keeps_memory());
  CHECK(f.timers.empty());
}

TEST_CASE("rc idle memory: memory to send is freed while memory to receive is in use") {
  Fixture f;
  f.receive_part();
  f.send();
  f.use();
  f.pass(kTrimAfter);
  f.pass(kTrimAfter);
  CHECK_FALSE(f.transmit.keeps_memory());
  CHECK(f.receive.keeps_memory());
  CHECK(f.timers.size() == 1);
}

TEST_CASE("rc idle memory: the memory of the stream is looked at until it has none") {
  Fixture f;
  KeepingStream& stream = f.attach();
  stream.keeps_for = 4;
  f.send();
  f.use();
  for (int second = 1; second <= 4; ++second) {
    CHECK(f.timers.size() == 1);
    f.pass(kTrimAfter);
    CHECK(stream.looks == second);
  }
  CHECK(f.timers.empty());
}

TEST_CASE("rc idle memory: a stream that is gone is not looked at") {
  Fixture f;
  f.attach().keeps_for = 1000;
  f.send();
  f.use();
  f.stream.close(true, {});
  REQUIRE(f.history.closed);
  f.pass(kTrimAfter);
  f.pass(kTrimAfter);
  CHECK_FALSE(f.transmit.keeps_memory());
  CHECK(f.timers.empty());
}

TEST_CASE("rc idle memory: after its end nothing is freed") {
  Fixture f;
  f.send();
  f.use();
  f.idle_memory.stop();
  CHECK(f.timers.empty());
  f.pass(10 * kTrimAfter);
  CHECK(f.transmit.keeps_memory());
}
