// SPDX-License-Identifier: Apache-2.0
#include "rnic/rc/rc_stream.h"

#include <memory>
#include <vector>
#include "support/catch.h"

#include "parts.h"
#include "recorded_stream.h"
#include "rnic/engine/attach.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

using Octets = std::vector<std::byte>;

struct Fixture {
  explicit Fixture(size_t zerocopy_from = 0) : host(clock, zerocopy_from) { stream.attach_none(); }
  ~Fixture() { detach_endpoint(host.engine(), endpoint); }

  void attach() { stream.attach(std::move(made)); }
  uint64_t counter(Counter which) const { return host.counters().get(which); }

  History history;
  ManualClock clock{kNow};
  Host host;
  CountingEndpoint endpoint;
  RcStream stream{host, endpoint};
  std::unique_ptr<RecordedStream> made = std::make_unique<RecordedStream>(history);
};

const Octets kLast = test::text("the last bytes");

}  // namespace

TEST_CASE("rc stream: its addresses are those of the stream, also when that is gone") {
  Fixture f;
  CHECK_FALSE(f.stream);
  CHECK(f.stream.local_address() == Address::parse("127.0.0.1"));
  f.attach();
  REQUIRE(f.stream);
  f.stream.close(true, {});
  CHECK_FALSE(f.stream);
  CHECK(f.stream.local_address() == Address::parse("10.0.0.1:1"));
  CHECK(f.stream.peer_address() == Address::parse("10.0.0.2:2"));
}

TEST_CASE("rc stream: the endpoint is asked for input while there is a stream") {
  Fixture f;
  f.host.engine().poll_step();
  const uint64_t without = f.endpoint.received;
  f.attach();
  CHECK(f.history.announces);
  f.host.engine().poll_step();
  CHECK(f.endpoint.received > without);
  f.stream.close(true, {});
  CHECK_FALSE(f.history.announces);
}

TEST_CASE("rc stream: a stream ends in order, or with a reset") {
  const bool in_order = GENERATE(true, false);
  Fixture f;
  f.attach();
  f.stream.close(in_order, {});
  CHECK(f.history.closed);
  CHECK(f.history.reset == !in_order);
  CHECK(f.history.sent.empty());
  CHECK(f.counter(Counter::rc_terminates_sent) == 0);
}

TEST_CASE("rc stream: the final bytes of a stream that leaves the engine are the control path's") {
  Fixture f;
  f.made->leaves = true;
  f.attach();
  f.stream.close(false, kLast);
  CHECK(f.host.lingering != nullptr);
  CHECK(f.host.final_bytes == kLast);
  CHECK_FALSE(f.history.closed);
  CHECK_FALSE(f.history.reset);
  CHECK(f.history.sent.empty());
  CHECK(f.counter(Counter::rc_terminates_sent) == 1);
}

TEST_CASE("rc stream: the final bytes of a stream that cannot leave the engine are sent at once") {
  Fixture f;
  f.attach();
  f.stream.close(false, kLast);
  CHECK(f.history.sent == kLast);
  CHECK(f.history.ended);
  CHECK_FALSE(f.history.reset);
  CHECK(f.history.closed);
  CHECK(f.counter(Counter::rc_terminates_sent) == 1);
}

TEST_CASE("rc stream: a stream sends without copying where the device asks for it, and it can") {
  Fixture f(1);
  f.attach();
  f.stream.allow_zero_copy(false);
  CHECK(f.stream.zero_copy());
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 0);
  f.stream.allow_zero_copy(true);  // FPDUs with markers
  CHECK_FALSE(f.stream.zero_copy());
  CHECK(f.history.asked_for_zero_copy == 1);
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 1);
}

TEST_CASE("rc stream: that a stream cannot send without copying is counted") {
  Fixture f(1);
  f.made->can_zero_copy = false;
  f.attach();
  f.stream.allow_zero_copy(false);
  CHECK_FALSE(f.stream.zero_copy());
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 1);
}

TEST_CASE("rc stream: where the device does not ask for it, a stream copies") {
  Fixture f(0);
  f.attach();
  f.stream.allow_zero_copy(false);
  CHECK_FALSE(f.stream.zero_copy());
  CHECK(f.history.asked_for_zero_copy == 0);
  CHECK(f.counter(Counter::rc_zerocopy_refused) == 0);
}

TEST_CASE("rc stream: a stream that the system does not let poll busily is counted") {
  Fixture f;
  f.made->can_busy_poll = false;
  f.attach();
  CHECK(f.counter(Counter::busy_poll_refused) == 1);
}
