// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/ud_read_parts.h"

#include <set>
#include "support/catch.h"

#include "parts.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;

namespace {

constexpr uint32_t kWindow = 2;

struct Fixture {
  Fixture() {
    REQUIRE(parts.reserve());
    parts.start(UINT32_MAX);
  }

  dgram::Identity identity{SipKey{3, 4}};
  // Few chains, so that parts share them.
  ReadOptions options{.max_outstanding = 1, .window = kWindow};
  UdRead read{kWindow, 8};
  UdReadParts parts{identity, options};
};

}  // namespace

TEST_CASE("ud read parts: a sink names its part until the part is revoked, and never again") {
  Fixture f;
  std::set<STag> over;
  for (uint64_t i = 0; i < 100; ++i) {
    UdReadPart& first = f.parts.add(f.read, i, 1);
    UdReadPart& second = f.parts.add(f.read, i + 1, 1);
    CHECK(f.parts.find(first.sink) == &first);
    CHECK(f.parts.find(second.sink) == &second);
    CHECK(second.msn == first.msn + 1);
    for (UdReadPart* part : {&first, &second}) {
      CHECK(over.insert(part->sink).second);
      f.parts.revoke(*part);
      CHECK(f.parts.find(part->sink) == nullptr);
    }
  }
  CHECK(f.read.open_parts == 0);
  CHECK_FALSE(f.parts.has_unsent());
}

TEST_CASE("ud read parts: a closed part makes room, and does not count as open") {
  Fixture f;
  UdReadPart& first = f.parts.add(f.read, 0, 1);
  const STag sink = first.sink;
  for (uint64_t i = 1; i < uint64_t{2} * kWindow; ++i) f.parts.add(f.read, i, 1).close();
  CHECK(f.read.open_parts == 1);
  UdReadPart& next = f.parts.add(f.read, 9, 1);
  CHECK(f.read.open_parts == 2);
  CHECK(next.begin == 9);
  CHECK(f.parts.find(sink) == &first);
}

TEST_CASE("ud read parts: after a Challenge a request is sent again, as the last one") {
  Fixture f;
  UdReadPart& first = f.parts.add(f.read, 0, 1);
  UdReadPart& second = f.parts.add(f.read, 1, 1);
  f.parts.mark_asked(first);
  f.parts.mark_asked(second);
  CHECK(first.answerable);
  CHECK_FALSE(f.parts.has_unsent());
  f.parts.ask_again(first, {.nonce = 5});
  CHECK_FALSE(first.answerable);
  CHECK(first.echo->nonce == 5);
  CHECK(f.parts.unsent().front() == &first);
  CHECK(f.read.parts.back() == &first);
  f.parts.mark_asked(first);
  CHECK(first.asked_as > second.asked_as);
}
