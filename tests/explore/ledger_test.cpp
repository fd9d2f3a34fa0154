// SPDX-License-Identifier: Apache-2.0
#include "ledger.h"

#include <string>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::explore;

namespace {

constexpr WcStatus kSuccess = WcStatus::success;

/// A ledger of `s1,s2/r1,w1 gone reset source` with everything posted.
struct Books : Ledger {
  Books() : Ledger(scenario()) {
    for (size_t side = 0; side < kSides; ++side)
      for (size_t i = 0; i < 2; ++i) posted(side, i);
  }
  static const Scenario& scenario() {
    static const Scenario books = Scenario::parse("s1,s2/r1,w1 gone reset source");
    return books;
  }
  static std::vector<std::byte> contents(size_t side, size_t i) {
    return contents_of(side, i, scenario().operations[side][i].length());
  }

  void receive(size_t i) { received(1, contents(0, i)); }
  void sent(size_t i, WcStatus status = kSuccess) { completed(0, i, status, {}); }
  void read(WcStatus status = kSuccess) { completed(1, 0, status, contents(1, 0)); }
  void record() { recorded(0, 1, true, contents(1, 1).size(), contents(1, 1)); }
  void recorded_by_peer(WcStatus status = kSuccess) { completed(1, 1, status, {}); }
  /// A right run, from the first message on.
  void all_well() {
    for (size_t i = 0; i < 2; ++i) {
      receive(i);
      sent(i);
    }
    read();
    record();
    recorded_by_peer();
  }

  /// The first violation.
  std::string first() {
    if (violations().empty()) finish();
    return violations().empty() ? "" : violations().front();
  }
};

}  // namespace

TEST_CASE("ledger: a right run violates nothing") {
  Books books;
  CHECK_FALSE(books.all_over());
  books.all_well();
  CHECK(books.all_over());
  CHECK(books.first().empty());
}

TEST_CASE("ledger: each wrong thing is found") {
  Books books;
  SECTION("delivered twice") {
    books.receive(0);
    books.receive(0);
    CHECK(books.first() == "A1 was delivered twice");
  }
  SECTION("out of order") {
    books.receive(1);
    books.receive(0);
    CHECK(books.first() == "A1 was delivered after a later message");
  }
  SECTION("changed") {
    auto bytes = Books::contents(0, 0);
    bytes.back() ^= std::byte{1};
    books.received(1, bytes);
    CHECK(books.first() == "A Send that nobody posted, of 40 bytes, was delivered to B");
  }
  SECTION("success for nothing") {
    books.sent(0);
    CHECK(books.first() == "A1 succeeded but was not delivered");
  }
  SECTION("failure for no reason") {
    books.sent(0, WcStatus::remote_operation_error);
    CHECK(books.first() == "A1 failed with 'remote operation error' for no reason");
  }
  SECTION("completed out of order") {
    books.receive(0);
    books.receive(1);
    books.sent(1);
    books.sent(0);
    CHECK(books.first() == "A1 completed after a later request");
  }
  SECTION("completed twice") {
    books.receive(0);
    books.sent(0);
    books.sent(0);
    CHECK(books.first() == "A1 completed although it was over");
  }
  SECTION("wrong bytes read") {
    books.completed(1, 0, kSuccess, Books::contents(0, 0));
    CHECK(books.first() == "B1 read wrong bytes");
  }
  SECTION("wrong bytes written") {
    books.recorded(0, 1, true, 40, Books::contents(0, 0));
    CHECK(books.first() == "B2 was delivered with wrong bytes");
  }
  SECTION("a part of a message") {
    books.recorded(0, 1, false, 10, {});
    CHECK(books.first() == "B2 was delivered in part");
  }
  SECTION("never ended") { CHECK(books.first() == "A1 never ended"); }
}

TEST_CASE("ledger: memory that goes away excuses its own operation alone") {
  Books books;
  books.happened({EventKind::gone, 1, 0});
  books.read(WcStatus::remote_access_error);
  CHECK(books.violations().empty());
  books.recorded_by_peer(WcStatus::remote_access_error);
  CHECK(books.first() == "B2 failed with 'remote access error' for no reason");
}

TEST_CASE("ledger: memory that goes away does not excuse any other failure") {
  Books books;
  books.happened({EventKind::gone, 1, 0});
  books.read(WcStatus::bad_response_error);
  CHECK(books.first() == "B1 failed with 'bad response' for no reason");
}

TEST_CASE("ledger: a delivered message is not refused") {
  Books books;
  books.record();
  books.happened({EventKind::gone, 1, 1});
  books.recorded_by_peer(WcStatus::remote_access_error);
  CHECK(books.first() == "B2 was refused after it was delivered");
}

TEST_CASE("ledger: a restart excuses what its peer had posted, and ends what it had itself") {
  Books books;
  books.happened({EventKind::reset, 1});
  books.sent(0, WcStatus::peer_restarted);
  books.sent(1, WcStatus::peer_restarted);
  CHECK(books.all_over());
  CHECK(books.first().empty());
}

TEST_CASE("ledger: a message reported lost is not delivered afterwards") {
  Books books;
  books.happened({EventKind::reset, 1});
  books.sent(0, WcStatus::peer_restarted);
  books.receive(0);
  CHECK(books.first() == "A1 was delivered after it was reported as 'peer was restarted'");
}

TEST_CASE("ledger: a restart excuses no second delivery") {
  Books books;
  books.receive(0);
  books.happened({EventKind::reset, 1});
  books.receive(0);
  CHECK(books.first() == "A1 was delivered twice");
}

TEST_CASE("ledger: a wrong request does not succeed") {
  Ledger ledger(Scenario::parse("s1k,w1x/r1x"));
  ledger.posted(0, 0);
  ledger.received(1, contents_of(0, 0, 40));
  CHECK(ledger.violations().front() == "A1 was delivered although it is wrong");
}

TEST_CASE("scenario: text that is no scenario is refused with a message") {
  for (const char* text : {"s1", "s5/", "x1/", "s/", "s1x/", "r1k/", "s1/ never", "s1/ window=x"}) {
    INFO(text);
    CHECK_THROWS_AS(Scenario::parse(text), std::invalid_argument);
  }
}

TEST_CASE("scenario: events concern what they can") {
  const Scenario scenario = Scenario::parse("s1,w1x/r2,s0~ gone source reset pause");
  std::string events;
  for (const Event& event : scenario.events()) events += event.to_string() + "; ";
  CHECK(events == "source A1; source A2; reset A; gone B1; source B1; post B2; reset B; pause; ");
}
