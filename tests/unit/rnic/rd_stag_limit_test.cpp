// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/rd/rd_stag_limit.h"

#include <chrono>

#include "rd_parts.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

const Verdict kMiss{.drop = Counter::drop_stag, .fault = TerminateCode{0, 1, 0}};

/// Two misses a second for a peer, three for all.
DatagramOptions limits() {
  DatagramOptions options;
  options.stag_misses_per_source = 2;
  options.stag_misses = 3;
  options.source_timeout = 60s;
  return options;
}

struct Fixture {
  bool may_name(const RdPeer& peer) { return limit.may_name_memory_at(peer, now) <= now; }
  void miss(RdPeer& peer, int times) {
    for (int i = 0; i < times; ++i) limit.note_verdict(peer, kMiss, now);
  }

  Time now = kNow;
  Receives receives;
  Peers peers{receives.buffers.shares()};
  RdPeer& first = peers.add("10.0.0.1");
  RdPeer& second = peers.add("10.0.0.2");
  RdPeer& third = peers.add("10.0.0.3");
  RdStagLimit limit{peers.table, limits()};
};

}  // namespace

TEST_CASE("rd stag limit: a peer that missed too often waits until the second is over") {
  Fixture f;
  f.miss(f.first, 1);
  CHECK(f.may_name(f.first));
  f.miss(f.first, 1);
  CHECK_FALSE(f.may_name(f.first));
  CHECK(f.limit.has_guessed_too_often(f.first, f.now));
  CHECK(f.may_name(f.second));
  const Time end = f.limit.may_name_memory_at(f.first, f.now);
  CHECK(end <= f.now + 1s);
  f.now = end;
  CHECK(f.may_name(f.first));
  CHECK_FALSE(f.limit.has_guessed_too_often(f.first, f.now));
}

TEST_CASE("rd stag limit: while all missed too often, only an address that never did passes") {
  Fixture f;
  f.limit.note_verdict(f.third, Verdict::accepted(), f.now);
  f.miss(f.first, 2);
  f.miss(f.second, 1);
  CHECK_FALSE(f.may_name(f.second));
  CHECK_FALSE(f.limit.has_guessed_too_often(f.second, f.now));  // it waits for the limit of all
  CHECK(f.may_name(f.third));
  f.now += 1s;
  CHECK(f.may_name(f.second));
}

TEST_CASE("rd stag limit: a drop that is nobody's fault neither counts nor earns trust") {
  Fixture f;
  for (int i = 0; i < 5; ++i)
    f.limit.note_verdict(f.first, Verdict::dropped(Counter::drop_late), f.now);
  CHECK(f.may_name(f.first));
  f.miss(f.second, 2);
  f.miss(f.third, 1);
  CHECK_FALSE(f.may_name(f.first));
}

TEST_CASE("rd stag limit: where peers stand in line, one that is not the first joins it") {
  Fixture f;
  f.peers.table.without_stag_pass.push_back(f.first);
  CHECK_FALSE(f.may_name(f.second));
  f.second.turn.set_first_in_line(true);
  CHECK(f.may_name(f.second));
  f.limit.note(f.second, true, f.now);  // its turn is over
  CHECK_FALSE(f.second.turn.is_first_in_line());
  f.peers.table.without_stag_pass.remove(f.first);
}
