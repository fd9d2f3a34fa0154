// SPDX-License-Identifier: Apache-2.0
// What ICMP messages tell of datagrams that a link sent, and that they change nothing else: true
// ones of closed ports, forged ones from a raw socket, and entries of error queues that are none.
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <thread>

#include "datagrams.h"
#include "error_queue_entry.h"
#include "llp/udp/focused_udp_link.h"
#include "llp/udp/icmp_errors.h"
#include "llp/uring/uring_udp_link.h"
#include "raw_socket.h"
#include "ring_scene.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using namespace std::chrono_literals;
using test::burst_of;
using test::ErrorQueueEntry;
using test::RawUdp;
using test::send_one;
using test::text_pattern;
using Kind = IcmpReport::Kind;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);
const Address kLoopback6 = Address::loopback(AddressFamily::ipv6);

Address closed_port(const Address& at = kLoopback4) {
  const RawUdp gone(at);
  return gone.address();
}

struct Told {
  explicit Told(DatagramLink& link) {
    link.on_icmp([this](const IcmpReport& report) {
      reports.push_back(report);
      quotes.emplace_back(test::text_of(report.quoted));
    });
  }
  std::vector<IcmpReport> reports;
  std::vector<std::string> quotes;
};

/// Receives, up to 5 s, until so many reports came.
void receive_until(DatagramLink& link, const Told& told, size_t count) {
  ReceiveBatch batch(8, 65536, 1024);
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (told.reports.size() < count && std::chrono::steady_clock::now() < deadline) {
    if (InputQueue* queue = link.input_queue()) queue->gather(true);
    if (link.receive(batch) == 0) std::this_thread::sleep_for(1ms);
  }
}

/// The kinds of links over UDP; nothing where the system has no ring.
std::unique_ptr<DatagramLink> open_link(const std::string& kind, const Address& local) {
  if (kind == "plain") return UdpLink::open(local);
  if (kind == "focused") return FocusedUdpLink::open(local, {}, 2);
  static const test::RingScene scene;
  return scene ? scene.open(local) : nullptr;
}

bool is_error_queue_empty(const DatagramLink& link) {
  pollfd polled{link.descriptor(), POLLIN, 0};
  ::poll(&polled, 1, 0);
  return (polled.revents & POLLERR) == 0;
}

/// Sends this host ICMP messages as if a router had; needs the right to make raw sockets.
class Forger {
 public:
  Forger() : raw_(::socket(AF_INET, SOCK_RAW, IPPROTO_ICMP)) {}
  bool allowed() const {
    if (!raw_) WARN("SKIPPED: no raw socket can be made here");
    return bool(raw_);
  }

  /// About a datagram from `from` to `to` that begins with `quoted`.
  void send(uint8_t type, uint8_t code, const Address& from, const Address& to,
            std::string_view quoted = {}) {
    std::vector<uint8_t> message(8 + 20 + 8);
    message[0] = type;
    message[1] = code;
    message[6] = message[7] = 0xFF;  // the next hop carries 65,535 bytes, it says
    uint8_t* const ip = &message[8];
    ip[0] = 0x45;
    ip[3] = static_cast<uint8_t>(28 + quoted.size());
    ip[8] = 64;
    ip[9] = IPPROTO_UDP;
    std::copy_n(from.bytes().begin(), 4, ip + 12);
    std::copy_n(to.bytes().begin(), 4, ip + 16);
    put_port(&message[28], from.port());
    put_port(&message[30], to.port());
    message.insert(message.end(), quoted.begin(), quoted.end());
    const uint16_t sum = checksum(message);
    std::memcpy(&message[2], &sum, sizeof sum);
    sockaddr_storage name;
    const socklen_t length = from.with_port(0).to_sockaddr(name);
    REQUIRE(::sendto(raw_.get(), message.data(), message.size(), 0,
                     reinterpret_cast<const sockaddr*>(&name), length) > 0);
  }

 private:
  static void put_port(uint8_t* at, uint16_t port) {
    at[0] = static_cast<uint8_t>(port >> 8);
    at[1] = static_cast<uint8_t>(port);
  }
  static uint16_t checksum(std::vector<uint8_t> bytes) {
    if (bytes.size() % 2 != 0) bytes.push_back(0);
    uint32_t sum = 0;
    for (size_t i = 0; i < bytes.size(); i += 2) {
      uint16_t word = 0;
      std::memcpy(&word, &bytes[i], sizeof word);
      sum += word;
    }
    while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
    return static_cast<uint16_t>(~sum);
  }

  UniqueFd raw_;
};

// --- True ones.

TEST_CASE("icmp: a closed port is told, and what follows is sent and received all the same") {
  const std::string kind = GENERATE("plain", "focused", "uring");
  const Address local = GENERATE(kLoopback4, kLoopback6);
  CAPTURE(kind, local.to_string());
  const auto link = open_link(kind, local);
  if (!link) return;
  Told told(*link);
  const Address closed = closed_port(local);
  REQUIRE(send_one(*link, closed, "is anybody there?").status == SendStatus::ok);
  receive_until(*link, told, 1);
  REQUIRE(told.reports.size() == 1);
  CHECK(told.reports[0].kind == Kind::port);
  CHECK(told.reports[0].destination == closed);
  CHECK(told.reports[0].reporter == local);
  CHECK(told.quotes[0] == "is anybody there?");
  CHECK(is_error_queue_empty(*link));

  RawUdp peer(local);
  for (int i = 0; i < 4; ++i) {
    REQUIRE(send_one(*link, closed, "again").status == SendStatus::ok);
    const SendResult result = send_one(*link, peer.address(), "number " + std::to_string(i));
    CHECK(result.status == SendStatus::ok);
    CHECK(result.sent == 1);
    const auto message = peer.receive();
    REQUIRE(message);
    CHECK(message->bytes == "number " + std::to_string(i));
  }
  receive_until(*link, told, 5);
  CHECK(told.reports.size() >= 2);  // the kernel may limit how many it sends
  peer.send(link->local_address(), "an answer");
  ReceiveBatch batch(8, 65536, 1024);
  CHECK(test::receive_texts(*link, batch, 1) == std::vector<std::string>{"an answer"});
}

TEST_CASE("icmp: a link on all addresses is told of closed ports of both families") {
  const auto link = UdpLink::open(Address::any(AddressFamily::ipv6));
  Told told(*link);
  for (const Address& closed : {closed_port(kLoopback4), closed_port(kLoopback6)}) {
    told.reports.clear();
    REQUIRE(send_one(*link, closed, "x").status == SendStatus::ok);
    receive_until(*link, told, 1);
    REQUIRE(told.reports.size() == 1);
    CHECK(told.reports[0].destination == closed);
  }
}

TEST_CASE("icmp: the second socket of a link tells as well") {
  const auto link = FocusedUdpLink::open(kLoopback4, {}, 1);
  REQUIRE(link->set_watched(false));
  Told told(*link);
  const Address closed = [&] {
    RawUdp peer;
    for (int i = 0; i < 4; ++i) send_one(*link, peer.address(), "number " + std::to_string(i));
    return peer.address();
  }();
  REQUIRE(link->focused());
  REQUIRE(send_one(*link, closed, "to whom it concerned").status == SendStatus::ok);
  receive_until(*link, told, 1);
  REQUIRE_FALSE(told.reports.empty());
  CHECK(told.reports[0].destination == closed);
  CHECK(told.quotes[0] == "to whom it concerned");
}

TEST_CASE("icmp: nobody listens to a link, and it goes on all the same") {
  const auto link = UdpLink::open(kLoopback4);
  const Address closed = closed_port();
  for (int i = 0; i < 100; ++i) CHECK(send_one(*link, closed, "x").status == SendStatus::ok);
  ReceiveBatch batch(8, 65536, 1024);
  for (uint32_t i = 0; i <= UdpReceiver::kEmptyPerLook; ++i) link->receive(batch);
  CHECK(is_error_queue_empty(*link));
}

// --- Forged ones.

void check_forgeries_cost_nothing(const std::string& kind) {
  Forger forger;
  const auto link = open_link(kind, kLoopback4);
  const auto receiver = UdpLink::open(kLoopback4);
  if (!forger.allowed() || !link) return;
  Told told(*link);
  std::vector<Counter> degraded;
  link->on_degradation([&](const Degradation& what) { degraded.push_back(what.counter); });
  degraded.clear();
  const Address to = receiver->local_address();
  std::vector<std::string> payloads;
  for (size_t i = 0; i < 64; ++i) payloads.push_back(text_pattern(1400, i));
  ReceiveBatch batch(8, 65536, 1024);
  for (const int type : {ICMP_DEST_UNREACH, ICMP_TIME_EXCEEDED, ICMP_PARAMETERPROB}) {
    for (uint8_t code = 0; code < 16; ++code) {
      CAPTURE(kind, type, int{code});
      for (int i = 0; i < 3; ++i)
        forger.send(static_cast<uint8_t>(type), code, link->local_address(), to);
      const SendResult result = link->send(burst_of(to, payloads).get());
      CHECK(result.status == SendStatus::ok);
      REQUIRE(result.sent == payloads.size());
      const bool whole = test::receive_texts(*receiver, batch, payloads.size()) == payloads;
      CHECK(whole);
    }
  }
  CHECK(degraded.empty());
  CHECK(told.reports.size() > 16);
  CHECK(is_error_queue_empty(*link));
}

TEST_CASE("icmp: forged messages of every type cost no datagram, and end no trains") {
  for (const char* kind : {"plain", "focused", "uring"})
    test::in_network_namespace([&] { check_forgeries_cost_nothing(kind); });
}

void check_flood_holds_up_nothing(const std::string& kind) {
  Forger forger;
  const auto link = open_link(kind, kLoopback4);
  if (!forger.allowed() || !link) return;
  CAPTURE(kind);
  Told told(*link);
  RawUdp peer;
  const Address nowhere = Address::parse("192.0.2.1:9");
  for (int i = 0; i < 1000; ++i)
    forger.send(ICMP_DEST_UNREACH, ICMP_PORT_UNREACH, link->local_address(), nowhere, "lies");
  peer.send(link->local_address(), "here all the same");
  size_t calls = 0;
  while (calls < 1000 && send_one(*link, peer.address(), "through").sent == 0) ++calls;
  CHECK(calls <= 1000 / IcmpErrors::kEntriesPerLook + 1);
  CHECK(peer.receive());
  ReceiveBatch batch(8, 65536, 1024);
  CHECK(test::receive_texts(*link, batch, 1) == std::vector<std::string>{"here all the same"});
  CHECK(std::ranges::all_of(told.reports, [&](const IcmpReport& report) {
    return report.destination == nowhere && report.kind == Kind::port;
  }));
}

TEST_CASE("icmp: a flood of forged messages holds up neither what comes nor what is sent") {
  for (const char* kind : {"plain", "focused", "uring"})
    test::in_network_namespace([&] { check_flood_holds_up_nothing(kind); });
}

// --- Entries of error queues.

std::optional<IcmpReport> report_in(ErrorQueueEntry& entry) {
  msghdr header = entry.header();
  sockaddr_storage name;
  header.msg_namelen = Address::parse("10.0.0.2:4791").to_sockaddr(name);
  header.msg_name = &name;
  return icmp_report_in(header, {});
}

struct Extended {
  sock_extended_err error;
  sockaddr_in from;
};

Extended extended(uint8_t origin, uint8_t type, uint8_t code) {
  Extended made{};
  made.error.ee_origin = origin;
  made.error.ee_type = type;
  made.error.ee_code = code;
  made.from.sin_family = AF_INET;
  made.from.sin_addr.s_addr = htonl(0x0A000001);
  return made;
}

ConstBytes bytes_of(const Extended& value) { return std::as_bytes(std::span(&value, 1)); }

TEST_CASE("icmp: an entry's type and code say what is unreachable, in both families") {
  struct Case {
    uint8_t origin, type, code;
    std::optional<Kind> kind;
  };
  constexpr uint8_t k4 = SO_EE_ORIGIN_ICMP, k6 = SO_EE_ORIGIN_ICMP6;
  for (const Case& one : {Case{k4, 3, 3, Kind::port},
                          Case{k4, 3, 0, Kind::host},
                          Case{k4, 3, 1, Kind::host},
                          Case{k4, 3, 9, Kind::prohibited},
                          Case{k4, 3, 10, Kind::prohibited},
                          Case{k4, 3, 13, Kind::prohibited},
                          Case{k4, 3, 4, std::nullopt},
                          Case{k4, 11, 0, Kind::host},
                          Case{k4, 12, 0, std::nullopt},
                          Case{k4, 200, 3, std::nullopt},
                          Case{k6, 1, 4, Kind::port},
                          Case{k6, 1, 0, Kind::host},
                          Case{k6, 1, 3, Kind::host},
                          Case{k6, 1, 1, Kind::prohibited},
                          Case{k6, 1, 5, Kind::prohibited},
                          Case{k6, 2, 0, std::nullopt},
                          Case{k6, 3, 0, Kind::host},
                          Case{k6, 4, 1, std::nullopt},
                          Case{SO_EE_ORIGIN_LOCAL, 3, 3, std::nullopt},
                          Case{SO_EE_ORIGIN_NONE, 3, 3, std::nullopt}}) {
    CAPTURE(one.origin, one.type, one.code);
    const bool ipv4 = one.origin != k6;
    const Extended made = extended(one.origin, one.type, one.code);
    const auto report = report_in(ErrorQueueEntry().add(
        ipv4 ? SOL_IP : SOL_IPV6, ipv4 ? IP_RECVERR : IPV6_RECVERR, bytes_of(made)));
    REQUIRE(report.has_value() == one.kind.has_value());
    if (!report) continue;
    CHECK(report->kind == *one.kind);
    CHECK(report->destination == Address::parse("10.0.0.2:4791"));
    CHECK(report->reporter == Address::parse("10.0.0.1"));
  }
}

TEST_CASE(
    "icmp: an entry that is cut, or has other things in it, is no report or has no reporter") {
  const Extended good = extended(SO_EE_ORIGIN_ICMP, 3, 3);
  const ConstBytes whole = bytes_of(good);
  for (size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const auto report = report_in(ErrorQueueEntry().add(SOL_IP, IP_RECVERR, whole.first(size)));
    CHECK(report.has_value() == (size >= sizeof(sock_extended_err)));
    if (report) CHECK(report->reporter == Address());
  }
  ErrorQueueEntry empty;
  CHECK_FALSE(report_in(empty));
  CHECK_FALSE(report_in(ErrorQueueEntry().add(SOL_IP, IP_TTL, whole)));
  CHECK_FALSE(report_in(ErrorQueueEntry().add(SOL_SOCKET, IP_RECVERR, whole)));
  CHECK(report_in(ErrorQueueEntry().add(SOL_IP, IP_TTL, whole).add(SOL_IP, IP_RECVERR, whole)));
  Extended strange = good;
  strange.from.sin_family = AF_UNIX;
  CHECK(report_in(ErrorQueueEntry().add(SOL_IP, IP_RECVERR, bytes_of(strange)))->reporter ==
        Address());
  strange.from.sin_family = AF_INET6;  // of which there are too few bytes
  CHECK(report_in(ErrorQueueEntry().add(SOL_IP, IP_RECVERR, bytes_of(strange)))->reporter ==
        Address());
}

}  // namespace
}  // namespace diwarp::llp
