// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_reads.h"

#include <chrono>
#include "support/catch.h"

#include "parts.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

const Address kTarget = Address::parse("10.0.0.1:7");
const Address kOther = Address::parse("10.0.0.1:8");
constexpr Duration kTimeout = 100ms;

struct Fixture {
  UdRead& begin(SendEntry& entry, const Address& target = kTarget) {
    entry.destination = target;
    entry.length = 10;
    UdRead& read = *reads.begin();
    read.entry = &entry;
    read.timeout = kTimeout;
    read.deadline = kNow + 1h;
    read.last_sign = read.last_try = read.last_nudge = kNow;
    read.scanned = entry.length;  // all was asked for
    return read;
  }

  SendEntry first, second, third;
  ReadOptions options{.max_outstanding = 3};
  UdReads reads{options, 8};
};

}  // namespace

TEST_CASE("ud reads: as many are under way as may be, and one that ended is used again") {
  Fixture f;
  UdRead& first = f.begin(f.first);
  UdRead& second = f.begin(f.second);
  CHECK_FALSE(f.reads.full());
  f.begin(f.third);
  CHECK(f.reads.full());
  f.reads.end(first);
  CHECK(f.reads.under_way() == 2);
  CHECK(f.reads.front() == &second);
  CHECK(&f.begin(f.first) == &first);  // behind the others now
  CHECK(f.reads.front() == &second);
}

TEST_CASE("ud reads: a sign of an earlier Read counts for later ones of the same target") {
  Fixture f;
  UdRead& first = f.begin(f.first);
  UdRead& other = f.begin(f.second, kOther);
  UdRead& last = f.begin(f.third);
  first.last_sign = kNow + 50ms;
  CHECK(f.reads.silent_at(last) == kNow + 50ms + kTimeout);
  CHECK(f.reads.silent_at(other) == kNow + kTimeout);
  last.last_sign = kNow + 80ms;
  CHECK(f.reads.silent_at(first) == kNow + 50ms + kTimeout);  // not the other way
  first.last_sign = kNow + 90ms;
  f.reads.hand_on_sign(first);
  f.reads.end(first);
  CHECK(f.reads.silent_at(last) == kNow + 90ms + kTimeout);
}

TEST_CASE("ud reads: a Read is due when its target is silent, earlier where bytes are missing") {
  Fixture f;
  UdRead& read = f.begin(f.first);
  CHECK(f.reads.due(read) == kNow + kTimeout);
  read.scanned = 0;
  CHECK(f.reads.due(read) == kNow + kTimeout / UdRead::kNudgesPerTimeout);
  read.deadline = kNow + 1ms;
  CHECK(f.reads.due(read) == kNow + 1ms);
}

TEST_CASE("ud reads: of several parts that fit, the one that was asked first is found") {
  Fixture f;
  UdRead& first = f.begin(f.first);
  UdRead& second = f.begin(f.second);
  const auto ask = [](UdRead& read, uint64_t as) -> UdReadPart& {
    UdReadPart& part = *read.spare.pop_front();
    read.parts.push_back(part);
    part.asked = as != 0;
    part.asked_as = as;
    return part;
  };
  ask(first, 0);  // not sent yet
  UdReadPart& later = ask(first, 5);
  UdReadPart& earlier = ask(second, 4);
  ask(second, 6);
  const auto any = [](const UdReadPart&) { return true; };
  CHECK(f.reads.find_asked(kTarget, any) == &earlier);
  CHECK(f.reads.find_asked(kTarget, [&](const UdReadPart& one) { return &one != &earlier; }) ==
        &later);
  CHECK(f.reads.find_asked(kOther, any) == nullptr);
}
