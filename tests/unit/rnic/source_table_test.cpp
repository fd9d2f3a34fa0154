// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/ud/source_table.h"

#include <chrono>
#include <string>

#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace std::chrono_literals;

namespace {

constexpr Time kStart{1000s};

Address host(uint32_t n) {
  return Address::parse("10.1." + std::to_string(n / 250) + "." + std::to_string(n % 250 + 1), 7);
}

struct Table {
  explicit Table(const SourceLimits& limits) : sources(limits, SipKey{1, 2}) {}

  Source* add(const Address& address, uint32_t incarnation = 1, Time now = kStart) {
    return sources.find_or_add({address, incarnation}, now, reason);
  }
  Source* prove(const Address& address, uint32_t incarnation = 1, Time now = kStart) {
    Source* source = add(address, incarnation, now);
    if (source != nullptr) source->accept(source->closed, 1);
    return source;
  }
  /// Whether it is still known.
  bool knows(const Address& address, uint32_t incarnation = 1) {
    const Source* source = add(address, incarnation);
    return source != nullptr && source->closed.contains(1);
  }

  Counter reason{};
  SourceTable sources;
};

}  // namespace

TEST_CASE("an address has its share of the sources, and gives up its own beyond that") {
  Table table({.sources = 100, .per_address = 3});
  table.prove(host(1));
  for (uint32_t incarnation = 1; incarnation <= 1000; ++incarnation)
    table.prove(host(2).with_port(static_cast<uint16_t>(incarnation)), incarnation);
  CHECK(table.sources.size() == 4);
  CHECK(table.knows(host(1)));
  CHECK(table.knows(host(2).with_port(999), 999));
  CHECK_FALSE(table.knows(host(2).with_port(1), 1));
}

TEST_CASE("sources made up at an address do not displace those that have finished messages there") {
  Table table({.sources = 100, .per_address = 4});
  table.prove(host(1), 1);
  table.prove(host(1), 2);
  for (uint32_t incarnation = 100; incarnation < 1100; ++incarnation)
    REQUIRE(table.add(host(1), incarnation) != nullptr);
  CHECK(table.sources.size() == 4);
  CHECK(table.knows(host(1), 1));
  CHECK(table.knows(host(1), 2));
}

TEST_CASE("an address whose sources are all in use gets no more") {
  Table table({.sources = 100, .per_address = 2});
  Source* const first = table.add(host(1), 1);
  table.add(host(1), 2)->open_count = 1;
  first->open_count = 1;
  CHECK(table.add(host(1), 3) == nullptr);
  CHECK(table.reason == Counter::drop_sources_full);
  CHECK(table.add(host(2)) != nullptr);
  first->open_count = 0;
  CHECK(table.add(host(1), 3) != nullptr);
}

TEST_CASE("strangers take the places of strangers, not of sources that have finished messages") {
  Table table({.sources = 20, .unproven = 8});
  for (uint32_t n = 0; n < 10; ++n) REQUIRE(table.prove(host(n)) != nullptr);
  for (uint32_t n = 100; n < 1100; ++n) REQUIRE(table.add(host(n)) != nullptr);
  CHECK(table.sources.size() == 18);
  for (uint32_t n = 0; n < 10; ++n) CHECK(table.knows(host(n)));
}

TEST_CASE("in a full table a stranger gives way before a source that was silent for longer") {
  Table table({.sources = 3});
  table.prove(host(1));
  table.add(host(2), 1, kStart + 1s);
  table.prove(host(3), 1, kStart + 2s);
  REQUIRE(table.prove(host(4), 1, kStart + 3s) != nullptr);
  CHECK(table.sources.size() == 3);
  CHECK(table.knows(host(1)));
  CHECK(table.knows(host(3)));
  CHECK(table.knows(host(4)));
  REQUIRE(table.add(host(5), 1, kStart + 4s) != nullptr);  // now there are known ones alone
  CHECK_FALSE(table.knows(host(1)));
}

TEST_CASE("a stranger becomes a known source with its first message, and one that is known stays") {
  Table table({.sources = 100, .unproven = 2});
  for (uint32_t n = 0; n < 50; ++n) table.prove(host(n));
  CHECK(table.sources.size() == 50);
  for (uint32_t n = 0; n < 50; ++n) CHECK(table.knows(host(n)));
}

TEST_CASE("a table of strangers in use has no room for more strangers") {
  Table table({.sources = 100, .unproven = 2});
  table.add(host(1))->open_records = 1;
  table.add(host(2))->responses = 1;
  CHECK(table.add(host(3)) == nullptr);
  CHECK(table.reason == Counter::drop_sources_full);
}

TEST_CASE("the table of sources stays within its memory") {
  constexpr size_t kMemory = 256 << 10;
  Table table({.sources = 16384, .memory = kMemory});
  size_t most = 0;
  for (uint32_t n = 0; n < 1000; ++n) {
    Source* source = table.add(host(n));
    REQUIRE(source != nullptr);
    for (uint32_t i = 0; i < 1024; ++i) {
      source->accept(source->closed, 2 * i);
      source->closed_records.refuse(2 * i, false);
    }
    most = std::max(most, table.sources.memory());
  }
  CHECK(most <= kMemory);
  CHECK(most > kMemory / 2);
  CHECK(table.sources.size() > 5);
  CHECK(table.sources.size() <= kMemory / SourceTable::kSourceBytes);
  table.sources.clear();
  CHECK(table.sources.memory() == 0);
}

TEST_CASE("strangers take no memory beyond their place in the table") {
  Table table({});
  for (uint32_t n = 0; n < 100; ++n) {
    Source* source = table.add(host(n));
    for (uint32_t i = 0; i < 1000; ++i) source->refuse_send(2 * i);
  }
  CHECK(table.sources.memory() == 100 * SourceTable::kSourceBytes);
}

TEST_CASE("sources that are silent are forgotten when their time is over, those in use later") {
  Table table({.timeout = 60s});
  CHECK(table.sources.next_expiry() == Time::max());
  table.prove(host(1));
  table.add(host(3))->open_count = 1;
  table.add(host(2), 1, kStart + 10s);
  CHECK(table.sources.next_expiry() == kStart + 60s);
  table.sources.expire(kStart + 60s);
  CHECK(table.sources.size() == 2);
  CHECK(table.sources.next_expiry() == kStart + 70s);
  table.sources.expire(kStart + 70s);
  CHECK(table.sources.size() == 1);
  CHECK(table.sources.next_expiry() == kStart + 120s);
  table.add(host(3))->open_count = 0;
  table.sources.expire(kStart + 200s);
  CHECK(table.sources.size() == 0);
  CHECK(table.sources.memory() == 0);
  CHECK(table.sources.next_expiry() == Time::max());
}

TEST_CASE("source table: the incarnation that a group is shown is another source elsewhere") {
  Table table(SourceLimits{});
  Counter reason{};
  Source* const direct = table.sources.find_or_add({host(1), 7}, kStart, reason);
  Source* const group = table.sources.find_or_add({host(1), 7, 2}, kStart, reason);
  Source* const other = table.sources.find_or_add({host(1), 7, 3}, kStart, reason);
  CHECK(direct != group);
  CHECK(group != other);
  CHECK(table.sources.find_or_add({host(1), 7, 2}, kStart, reason) == group);
}
