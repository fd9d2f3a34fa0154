// SPDX-License-Identifier: Apache-2.0
// What queue pairs over datagrams tell of the network and the host, however much they are told.
#include "rnic/datagram/network_reports.h"

#include <array>
#include <chrono>
#include <string>

#include "dgram/envelope.h"
#include "parts.h"
#include "rdmap/terminate.h"
#include "rnic/context/loopback_reach.h"
#include "rnic/datagram/control_sender.h"
#include "rnic/datagram/rd/rd_path.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::rnic;
using namespace diwarp::rnic::parts;
using namespace std::chrono_literals;

namespace {

using Kind = llp::IcmpReport::Kind;

const Address kPeer = Address::parse("10.0.0.2:4791");
const Address kRouter = Address::parse("10.0.0.1");

struct Fixture {
  explicit Fixture(uint32_t entries = 64) : errors(control, logged, entries, 1000) {}

  /// The beginning of a datagram to the peer from here.
  ConstBytes sent() {
    dgram::Envelope::Sealer sealer(0);
    std::array<std::byte, dgram::Envelope::kTrailerBytes> trailer{};
    sealer.seal({.incarnation = identity.incarnation(kPeer)}, prefix, {}, trailer);
    return prefix;
  }
  void icmp(ConstBytes quoted, Kind kind = Kind::port, Time now = kNow) {
    network.icmp({.destination = kPeer, .reporter = kRouter, .kind = kind, .quoted = quoted}, now);
  }
  size_t entries() {
    size_t count = 0;
    while (errors.poll()) ++count;
    return count;
  }

  Counters counters;
  LoggedCounters logged{counters};
  CountingWaker control_waker;
  ControlSender control{control_waker};
  ErrorReports errors;
  dgram::Identity identity{SipKey{}};
  NetworkReports network{errors, identity, logged};
  std::array<std::byte, dgram::Envelope::kPrefixBytes> prefix{};
};

}  // namespace

TEST_CASE("network reports: an ICMP message is counted by its kind, and told with cause and cure") {
  Fixture f;
  struct Case {
    Kind kind;
    Counter counter;
    DatagramErrorKind error;
    std::string words;
  };
  for (const Case& one : {Case{Kind::port, Counter::port_unreachable,
                               DatagramErrorKind::port_unreachable, "start the peer"},
                          Case{Kind::host, Counter::host_unreachable,
                               DatagramErrorKind::host_unreachable, "check the address"},
                          Case{Kind::prohibited, Counter::path_prohibited,
                               DatagramErrorKind::path_prohibited, "firewall"}}) {
    f.icmp(f.sent(), one.kind, kNow + 10s * static_cast<int>(one.error));
    CHECK(f.counters.get(one.counter) == 1);
    const auto entry = f.errors.poll();
    REQUIRE(entry);
    CHECK(entry->kind == one.error);
    CHECK(entry->peer == kPeer);
    CHECK(entry->reporter == kRouter);
    const std::string text = to_string(*entry);
    CAPTURE(text);
    CHECK(text.find("10.0.0.2:4791") != std::string::npos);
    CHECK(text.find("10.0.0.1") != std::string::npos);
    CHECK(text.find("forged") != std::string::npos);
    CHECK(text.find(one.words) != std::string::npos);
  }
  CHECK(f.counters.get(Counter::errors_sent) == 0);
}

TEST_CASE("network reports: an ICMP message that quotes what was not sent is dropped") {
  Fixture f;
  const ConstBytes sent = f.sent();
  std::array<std::byte, dgram::Envelope::kPrefixBytes> other = f.prefix;
  other.back() ^= std::byte{1};
  f.icmp(other);
  CHECK(f.counters.get(Counter::drop_icmp) == 1);
  CHECK(f.counters.get(Counter::port_unreachable) == 0);
  CHECK_FALSE(f.errors.poll());
  f.icmp(sent.first(sent.size() - 1));  // too little to see that
  f.icmp({});
  CHECK(f.counters.get(Counter::port_unreachable) == 2);
}

TEST_CASE("network reports: a flood of messages is counted, and leaves room for other errors") {
  Fixture f(16);
  for (int i = 0; i < 100'000; ++i) f.icmp(f.sent(), Kind::host, kNow + 1ms * i);
  CHECK(f.counters.get(Counter::host_unreachable) == 100'000);
  rdmap::ErrorReport report;
  report.code = rdmap::fault::kTaggedBaseOrBounds;
  for (int i = 0; i < 12; ++i) f.errors.received(kPeer, report);
  size_t informing = 0, others = 0;
  while (const auto entry = f.errors.poll())
    ++(entry->kind == DatagramErrorKind::protocol ? others : informing);
  CHECK(informing == 4);
  CHECK(others == 12);
  f.icmp(f.sent(), Kind::host, kNow + 1000s);  // there is room again
  CHECK(f.entries() == 1);
}

TEST_CASE("network reports: in a second a few entries are made, however often they are taken") {
  Fixture f;
  size_t entries = 0;
  for (int i = 0; i < 1000; ++i) {
    f.icmp(f.sent(), Kind::port, kNow + 1ms * i);
    entries += f.entries();
  }
  CHECK(entries >= 1);
  CHECK(entries <= NetworkReports::kEntriesPerSecond + 1);
}

TEST_CASE("network reports: a black hole and a full receive buffer are told with a cure") {
  Fixture f;
  f.network.black_hole(kPeer, 1472, 1200);
  auto entry = f.errors.poll();
  REQUIRE(entry);
  CHECK(f.counters.get(Counter::mtu_black_holes) == 1);
  std::string text = to_string(*entry);
  CAPTURE(text);
  CHECK(text.find("1472 bytes to 10.0.0.2:4791 vanish") != std::string::npos);
  CHECK(text.find("1200") != std::string::npos);
  CHECK(text.find("fragmentation needed") != std::string::npos);
  f.network.overflowed(12, kNow + 1s);
  entry = f.errors.poll();
  REQUIRE(entry);
  text = to_string(*entry);
  CHECK(entry->datagrams == 12);
  CHECK(text.find("12 datagrams") != std::string::npos);
  CHECK(text.find("net.core.rmem_max") != std::string::npos);
}

TEST_CASE("rd path: datagrams that vanish become as short as nearly all paths carry, then all") {
  CHECK(RdPath::shorter(kPeer, 9000) == 1200);
  CHECK(RdPath::shorter(kPeer, 1201) == 1200);
  CHECK(RdPath::shorter(kPeer, 1200) == 548);
  CHECK(RdPath::shorter(kPeer, 548) == 0);
  const Address ipv6 = Address::parse("[fd00::1]:1");
  CHECK(RdPath::shorter(ipv6, 1452) == 1232);
  CHECK(RdPath::shorter(ipv6, 1232) == 0);
  RdPath path;
  CHECK(path.limit(5000, kNow) == 5000);
  path.shorten(1200, kNow);
  CHECK(path.limit(5000, kNow) == dgram::Envelope::max_body(1200));
  CHECK(path.limit(100, kNow) == 100);
  CHECK(path.limit(5000, kNow + RdPath::kShortenedFor) == 5000);
}

TEST_CASE("loopback reach: from a loopback address nothing but this host is reached") {
  Counters counters;
  LoopbackReach loopback(Address::parse("127.0.0.1:5"), counters);
  CHECK_FALSE(loopback.refuses(Address::parse("127.0.0.9:1")));
  CHECK(loopback.refuses(Address::parse("192.0.2.1:1")));
  CHECK(LoopbackReach(Address::parse("[::1]:5"), counters)
            .refuses(Address::parse("[2001:db8::1]:1")));
  for (const Address& own : host_addresses()) {
    CAPTURE(own.to_string());
    CHECK_FALSE(loopback.refuses(own.with_port(1)));
  }
  CHECK(counters.get(Counter::loopback_to_remote) == 2);
  LoopbackReach other(Address::parse("10.9.8.7:5"), counters);
  CHECK_FALSE(other.refuses(Address::parse("192.0.2.1:1")));
}
