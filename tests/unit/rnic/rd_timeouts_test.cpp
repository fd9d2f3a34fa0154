// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_timeouts.h"

#include <chrono>
#include "support/catch.h"

#include "rd_parts.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

constexpr RdTimeouts kTimeouts{
    .peer_timeout = 10s, .keep_alive = 1s, .idle_timeout = 2s, .message_timeout = 5s};

struct Fixture {
  Receives receives;
  Peers peers{receives.buffers.shares()};
  RdPeer& peer = peers.add("10.0.0.1");
};

}  // namespace

TEST_CASE("rd timeouts: a peer that is not used is due when it is forgotten, and not given up") {
  Fixture f;
  CHECK(kTimeouts.give_up_at(f.peer) == Time::max());
  CHECK(kTimeouts.give_up_early_at(f.peer) == Time::max());
  CHECK(kTimeouts.next_due(f.peer) == kNow + 2s);
  f.peer.times.heard(kNow + 1s);
  CHECK(kTimeouts.next_due(f.peer) == kNow + 3s);
}

TEST_CASE("rd timeouts: a peer of which something waits here outlives lost probes of its own") {
  Fixture f;
  f.peer.turn.hold();
  CHECK(kTimeouts.forgotten_after(f.peer) == 11s);
  f.peer.turn.wait_for_memory(kNow);
  CHECK(kTimeouts.next_due(f.peer) == kNow + kRdMemoryRetry);
  f.peer.turn.resume();
  CHECK(kTimeouts.forgotten_after(f.peer) == 2s);
}

TEST_CASE("rd timeouts: without one of its own a message has the timeout of its peer") {
  ReliableOptions options{.peer_timeout = 7s};
  options.message_timeout = Duration::zero();
  CHECK(RdTimeouts::of(options).message_timeout == 7s);
  options.message_timeout = 3s;
  CHECK(RdTimeouts::of(options).message_timeout == 3s);
}
