// SPDX-License-Identifier: Apache-2.0
#include "rnic/datagram/datagram_sender.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
#include "support/catch.h"

#include "parts.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

using Numbers = std::vector<uint64_t>;

/// Takes `room` datagrams of each burst, and notes whose they are: a body repeats the name of its
/// source.
struct Link final : llp::DatagramLink {
  llp::SendResult send(std::span<const llp::OutgoingDatagram> burst) override {
    ++calls;
    llp::SendResult result = ending;
    result.sent = std::min(room, burst.size());
    if (result.sent == burst.size()) result = {.sent = burst.size()};
    for (const llp::OutgoingDatagram& datagram : burst.first(result.sent)) {
      bytes += datagram.size();
      const ConstBytes front = datagram.pieces.front();
      names += static_cast<char>(front[dgram::Envelope::kPrefixBytes]);
    }
    return result;
  }
  size_t receive(llp::ReceiveBatch&) override { return 0; }
  size_t max_datagram(const Address&) override { return 1472; }
  Address local_address() const override { return {}; }

  /// The names of the sources of what it took since the last call.
  std::string taken() { return std::exchange(names, {}); }

  size_t room = SIZE_MAX;
  llp::SendResult ending{.status = llp::SendStatus::would_block};
  size_t calls = 0;
  size_t bytes = 0;
  std::string names;
};

/// Has so many datagrams to send, and notes what it is told of each.
struct Source final : DatagramSource {
  explicit Source(char its_name) : name(its_name) {}

  void fill(DatagramBuilder& builder, Time) override {
    if (on_fill) on_fill();
    max_body = builder.max_body({});
    for (size_t i = 0; i < count; ++i) {
      if (!builder.open()) return builder.close();
      std::ranges::fill(builder.header().first(body), static_cast<std::byte>(name));
      builder.add(Address::parse("10.0.0.1:7"), {}, body, 0, {.source = this, .value = next + i});
    }
  }
  void sent(const DatagramTag& tag) override {
    sent_numbers.push_back(tag.value);
    next = tag.value + 1;
    --count;
  }
  void unsent(const DatagramTag& tag) override { unsent_numbers.push_back(tag.value); }
  using DatagramSource::set_idle;
  void refused(const DatagramTag& tag, int error) override {
    refused_numbers.push_back(tag.value);
    last_error = error;
    --count;
  }

  const char name;
  size_t count = 0;
  uint64_t next = 0;  // the number of its next datagram
  size_t body = 100;
  size_t max_body = 0;
  Numbers sent_numbers, unsent_numbers, refused_numbers;
  int last_error = 0;
  std::function<void()> on_fill;
};

struct Fixture {
  explicit Fixture(uint64_t max_rate = 0, uint32_t segment = 0)
      : sender(identity, segment, max_rate) {
    for (Source* source : {&a, &b, &c}) sender.add(*source);
  }
  Served run() { return sender.run(*burst, link, counters, now); }
  std::string taken() {
    run();
    return link.taken();
  }

  Time now = kNow;
  Counters counters;
  dgram::Identity identity{SipKey{5, 6}};
  Link link;
  std::unique_ptr<DatagramBurst> burst = std::make_unique<DatagramBurst>();
  Source a{'a'}, b{'b'}, c{'c'};
  DatagramSender sender;
};

/// Bytes of a datagram of a source, with the envelope.
constexpr size_t kWhole = 100 + dgram::Envelope::kPrefixBytes + dgram::Envelope::kTrailerBytes;

}  // namespace

TEST_CASE("datagram sender: the datagrams of all sources leave in one burst, and each is told") {
  Fixture f;
  f.a.count = 2;
  f.c.count = 1;
  const Served served = f.run();
  CHECK(served.work == 3);
  CHECK(served.pending == Pending::nothing);
  CHECK(f.link.calls == 1);
  CHECK(f.link.taken() == "aac");
  CHECK(f.a.sent_numbers == Numbers{0, 1});
  CHECK(f.b.sent_numbers.empty());
  CHECK(f.c.sent_numbers == Numbers{0});
  CHECK(f.counters.get(Counter::tx_datagrams) == 3);
  CHECK(f.counters.get(Counter::tx_bytes) == f.link.bytes);
  CHECK(f.link.bytes == 3 * kWhole);
}

TEST_CASE("datagram sender: a source that is idle is not asked, and the others have their turns") {
  Fixture f;
  size_t asked = 0;
  f.b.on_fill = [&] { ++asked; };
  f.b.set_idle(true);
  f.a.count = f.c.count = 1;
  CHECK(f.taken() == "ac");
  CHECK(asked == 0);
  f.b.set_idle(false);
  f.a.count = f.b.count = f.c.count = 1;
  CHECK(f.taken() == "bca");
  CHECK(asked == 1);
}

TEST_CASE("datagram sender: without a datagram the link is not asked") {
  Fixture f;
  const Served served = f.run();
  CHECK(served.work == 0);
  CHECK(served.pending == Pending::nothing);
  CHECK(f.link.calls == 0);
}

TEST_CASE("datagram sender: the sources take turns to be the first in a burst") {
  Fixture f;
  std::string first;
  for (int i = 0; i < 6; ++i) {
    for (Source* source : {&f.a, &f.b, &f.c}) source->count = 1;
    const std::string names = f.taken();
    REQUIRE(names.size() == 3);
    first += names[0];
  }
  CHECK(first == "abcabc");
}

TEST_CASE("datagram sender: a source that fills each burst does not keep the others waiting") {
  Fixture f;
  f.a.count = 10 * DatagramBurst::kMaxDatagrams;
  f.b.count = 1;
  const Served served = f.run();
  CHECK(served.work == DatagramBurst::kMaxDatagrams);
  CHECK(served.pending == Pending::more);
  f.link.taken();
  CHECK(f.taken().front() == 'b');
}

TEST_CASE("datagram sender: a source that had nothing before another was asked is asked again") {
  Fixture f;
  f.b.on_fill = [&] { f.a.count = 1; };
  CHECK(f.run().work == 1);
  CHECK(f.link.taken() == "a");
}

TEST_CASE("datagram sender: datagrams that a full link did not take come again") {
  Fixture f;
  f.a.count = 2;
  f.b.count = 1;
  f.link.room = 1;
  const Served served = f.run();
  CHECK(served.work == 1);
  CHECK(served.pending == Pending::writable);
  CHECK(f.a.sent_numbers == Numbers{0});
  CHECK(f.a.unsent_numbers == Numbers{1});
  CHECK(f.b.unsent_numbers == Numbers{0});
  CHECK(f.counters.get(Counter::tx_would_block) == 1);
  CHECK(f.counters.get(Counter::tx_datagrams) == 1);
  CHECK(f.counters.get(Counter::tx_bytes) == kWhole);
  f.link.room = SIZE_MAX;
  f.link.taken();
  CHECK(f.taken() == "ba");
  CHECK(f.a.sent_numbers == Numbers{0, 1});
}

TEST_CASE("datagram sender: the source of a datagram that the link refuses is told the reason") {
  Fixture f;
  f.a.count = 1;
  f.b.count = 2;
  f.link.room = 1;
  f.link.ending = {.status = llp::SendStatus::refused, .error = EMSGSIZE};
  const Served served = f.run();
  CHECK(served.work == 1);
  CHECK(served.pending == Pending::more);
  CHECK(f.a.sent_numbers == Numbers{0});
  CHECK(f.b.unsent_numbers == Numbers{0, 1});
  CHECK(f.b.refused_numbers == Numbers{0});
  CHECK(f.b.last_error == EMSGSIZE);
  CHECK(f.a.refused_numbers.empty());
  CHECK(f.counters.get(Counter::tx_errors) == 1);
}

TEST_CASE("datagram sender: bodies are as long as the path carries, or the application chose") {
  const auto max_body = [](uint32_t segment) {
    Fixture f(0, segment);
    f.run();
    return f.a.max_body;
  };
  CHECK(max_body(0) == dgram::Envelope::max_body(1472));
  CHECK(max_body(500) == dgram::Envelope::max_body(500));
  CHECK(max_body(9000) == dgram::Envelope::max_body(1472));
}

TEST_CASE("datagram sender: a rate lets through what it gives in a time, and one datagram more") {
  constexpr uint64_t kRate = 1'000'000;
  Fixture f(kRate);
  f.a.count = 100'000;
  constexpr Duration kTime = 50ms;
  while (f.now < kNow + kTime) {
    const Served served = f.run();
    REQUIRE(f.sender.paced());
    CHECK(served.pending == Pending::nothing);
    REQUIRE(f.sender.ready_at() > f.now);
    f.now = f.sender.ready_at();
  }
  const size_t given = kRate * 50 / 1000;
  const size_t at_once = kRate / 1000;
  CHECK(f.link.bytes >= given);
  CHECK(f.link.bytes <= given + at_once + kWhole);
}

TEST_CASE("datagram sender: nothing is sent before the rate lets it") {
  Fixture f(1'000'000);
  f.a.count = 100;
  f.run();
  REQUIRE(f.sender.paced());
  f.link.taken();
  const Time ready = f.sender.ready_at();
  f.now = ready - 10us;
  CHECK(f.taken().empty());
  CHECK(f.sender.paced());
  f.now = ready;
  CHECK(f.taken() == "a");
}

TEST_CASE("datagram sender: a rate that has more than there is to send does not end a burst") {
  Fixture f(1'000'000);
  f.a.count = 2;
  CHECK(f.run().work == 2);
  CHECK_FALSE(f.sender.paced());
}

TEST_CASE("datagram sender: what the link did not take costs nothing of the rate") {
  Fixture f(1'000'000);
  f.a.count = 100;
  f.link.room = 0;
  CHECK(f.run().pending == Pending::writable);
  CHECK_FALSE(f.sender.paced());
  f.link.room = SIZE_MAX;
  const size_t again = f.run().work;
  Fixture other(1'000'000);
  other.a.count = 100;
  CHECK(again == other.run().work);
}

TEST_CASE("datagram sender: without its rate a queue pair sends at once") {
  Fixture f(1'000'000);
  f.a.count = 50;
  f.run();
  REQUIRE(f.sender.paced());
  f.sender.set_max_rate(0, f.now);
  f.run();
  CHECK(f.a.count == 0);
  CHECK_FALSE(f.sender.paced());
}
