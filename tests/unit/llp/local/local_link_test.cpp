// SPDX-License-Identifier: Apache-2.0
// Links of two devices of one host: what goes by rings in shared memory, from when on, and what
// happens when one side goes. Both devices are in this process, and take turns.
#include "llp/local/local_link.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llp/local/local_peers.h"
#include "llp/tcp/tcp_connector.h"
#include "llp/udp/udp_link.h"
#include "support/catch.h"
#include "support/contents.h"
#include "unit/llp/datagrams.h"
#include "unit/llp/raw_socket.h"

namespace diwarp::llp {
namespace {

using test::send_one;
using Texts = std::vector<std::string>;

const Address kLoopback = Address::loopback(AddressFamily::ipv4);
constexpr uint32_t kAfter = 4;
constexpr LocalSettings kSettings = {.after = kAfter, .ring = kLeastRing, .max_rings = 2};

/// A device with its links, as an engine asks them.
struct LocalDevice {
  explicit LocalDevice(const LocalSettings& settings = kSettings,
                       const Address& address = kLoopback)
      : at(address), peers(address, settings, connector, counters, clock) {}

  LocalLink& open() {
    auto& link = *links.emplace_back(std::make_unique<LocalLink>(UdpLink::open(at), peers));
    link.set_key(&link);
    return link;
  }
  void close(LocalLink& link) {
    link.set_key(nullptr);
    std::erase_if(links, [&](const auto& one) { return one.get() == &link; });
  }
  void step() {
    peers.gather(true);
    while (peers.next_ready() != nullptr) {
    }
  }
  uint64_t count(Counter counter) const { return counters.get(counter); }

  const Address at;
  Counters counters;
  ManualClock clock;
  TcpConnector connector;
  LocalPeers peers;
  std::vector<std::unique_ptr<LocalLink>> links;
};

Texts receive(LocalLink& link, size_t receives = 4) {
  ReceiveBatch batch(8, 65536, 1024);
  Texts came;
  for (size_t i = 0; i < receives; ++i) {
    link.receive(batch);
    for (std::string& text : test::texts(batch)) came.push_back(std::move(text));
  }
  return came;
}

/// Two links, of which the first one has a ring to the second.
struct Pair {
  explicit Pair(const LocalSettings& settings = kSettings, const Address& address = kLoopback)
      : one(settings, address), two(settings, address), from(one.open()), into(two.open()) {}

  Address to() const { return kLoopback.with_port(into.local_address().port()); }
  void step() {
    for (int i = 0; i < 4; ++i) {
      one.step();
      two.step();
    }
  }
  /// Sends as often as it takes; what came meanwhile.
  Texts earn() {
    Texts came;
    for (uint32_t i = 0; i < kAfter + 1; ++i) {
      CHECK(send_one(from, to(), "by UDP").status == SendStatus::ok);
      for (std::string& text : receive(into)) came.push_back(std::move(text));
    }
    step();
    return came;
  }
  uint64_t local() const { return one.count(Counter::local_datagrams); }

  LocalDevice one;
  LocalDevice two;
  LocalLink& from;
  LocalLink& into;
};

TEST_CASE("a destination of this host that is sent to often gets a ring") {
  Pair pair;
  CHECK(pair.earn().size() == kAfter + 1);
  CHECK(pair.one.count(Counter::local_peers) == 1);
  CHECK(pair.local() == 0);
  const std::string long_text = test::text_pattern(60000);
  CHECK(send_one(pair.from, pair.to(), "first").status == SendStatus::ok);
  CHECK(send_one(pair.from, pair.to(), long_text).status == SendStatus::ok);
  CHECK(send_one(pair.from, pair.to(), "").status == SendStatus::ok);
  CHECK(pair.local() == 3);
  CHECK(pair.one.count(Counter::local_bytes) == 5 + long_text.size());
  CHECK(receive(pair.into) == Texts{"first", long_text, ""});
}

TEST_CASE("a datagram of a ring comes from the address that it would come from by UDP") {
  const bool all = GENERATE(false, true);
  Pair pair(kSettings, all ? Address::any(AddressFamily::ipv4) : kLoopback);
  pair.earn();
  REQUIRE(send_one(pair.from, pair.to(), "text").status == SendStatus::ok);
  REQUIRE(pair.local() == 1);
  ReceiveBatch batch(8, 65536, 1024);
  for (int i = 0; i < 4 && batch.datagrams().empty(); ++i) pair.into.receive(batch);
  REQUIRE(batch.datagrams().size() == 1);
  const IncomingDatagram& came = batch.datagrams().front();
  CHECK(came.from == kLoopback.with_port(pair.from.local_address().port()));
  CHECK_FALSE(came.group);
  CHECK((came.local != 0) == all);
  if (all) CHECK(pair.into.address_of(came.local) == kLoopback);
}

TEST_CASE(
    "destinations without a device of this user's go by UDP, and are sought ever more rarely") {
  LocalDevice device;
  LocalLink& link = device.open();
  test::RawUdp peer;
  for (int i = 0; i < 200; ++i) {
    REQUIRE(send_one(link, peer.address(), "text").status == SendStatus::ok);
    REQUIRE(peer.receive());
    device.step();
  }
  CHECK(device.count(Counter::local_peers) == 0);
  CHECK(device.count(Counter::local_datagrams) == 0);
  CHECK(device.count(Counter::local_refused) == 0);
}

/// Sends that are held back for room.
uint32_t held_back(LocalLink& link, const Address& to, const std::string& text) {
  uint32_t count = 0;
  while (count < 10'000 && send_one(link, to, text).status == SendStatus::would_block) ++count;
  return count;
}

TEST_CASE("what finds a ring full is held back for a while, then lost and counted") {
  Pair pair;
  pair.earn();
  const std::string text = test::text_pattern(60000);
  for (int i = 0; i < 4; ++i) CHECK(send_one(pair.from, pair.to(), text).status == SendStatus::ok);
  CHECK(held_back(pair.from, pair.to(), text) == kTriesForRoom);
  for (int i = 0; i < 5; ++i) CHECK(send_one(pair.from, pair.to(), text).status == SendStatus::ok);
  CHECK(pair.one.count(Counter::local_overflow) == 6);
  // A receiver that reads is waited for again. The end of the ring is too short for a fourth.
  pair.two.step();
  REQUIRE(receive(pair.into).size() == 4);
  for (int i = 0; i < 3; ++i) CHECK(send_one(pair.from, pair.to(), text).status == SendStatus::ok);
  CHECK(held_back(pair.from, pair.to(), text) == kTriesForRoom);
  CHECK(pair.one.count(Counter::local_overflow) == 7);
  CHECK(receive(pair.into).size() == 3);
  CHECK(send_one(pair.from, pair.to(), "again").status == SendStatus::ok);
  CHECK(receive(pair.into) == Texts{"again"});
}

TEST_CASE("datagrams that came by UDP before the ring was there are received before its own") {
  Pair pair;
  for (uint32_t i = 0; i < kAfter + 1; ++i) send_one(pair.from, pair.to(), "by UDP");
  pair.step();
  REQUIRE(send_one(pair.from, pair.to(), "by the ring").status == SendStatus::ok);
  REQUIRE(pair.local() == 1);
  Texts expected(kAfter + 1, "by UDP");
  expected.push_back("by the ring");
  CHECK(receive(pair.into, 16) == expected);
}

TEST_CASE("what came by UDP while the ring was made is received before the ring's own as well") {
  Pair pair;
  pair.earn();  // the receiver has looked at the ring, and found nothing
  CHECK(receive(pair.into).empty());
  test::RawUdp late;  // as a burst that left before the sender knew of its ring
  REQUIRE(late.send(pair.to(), "by UDP"));
  REQUIRE(send_one(pair.from, pair.to(), "by the ring").status == SendStatus::ok);
  CHECK(receive(pair.into, 8) == Texts{"by UDP", "by the ring"});
}

TEST_CASE("no sender that fills its ring keeps others from being heard") {
  LocalDevice devices[3];
  LocalLink& into = devices[2].open();
  const Address to = kLoopback.with_port(into.local_address().port());
  LocalLink* senders[] = {&devices[0].open(), &devices[1].open()};
  for (LocalLink* sender : senders) {
    for (uint32_t i = 0; i < kAfter + 1; ++i) send_one(*sender, to, "by UDP");
    for (int i = 0; i < 6; ++i)
      for (LocalDevice& device : devices) device.step();
  }
  receive(into, 32);
  const std::string text = test::text_pattern(kMaxDatagram);
  while (devices[0].count(Counter::local_overflow) == 0) send_one(*senders[0], to, text);
  ReceiveBatch small(1, 65536, 64);
  REQUIRE(send_one(*senders[1], to, "heard").status == SendStatus::ok);
  bool heard = false;
  for (int i = 0; i < 8 && !heard; ++i) {
    send_one(*senders[0], to, text);
    into.receive(small);
    for (const std::string& came : test::texts(small)) heard = heard || came == "heard";
  }
  CHECK(heard);
}

TEST_CASE("one gather() hands out what had something at its start, however much comes meanwhile") {
  Pair pair;
  pair.earn();
  receive(pair.into);
  send_one(pair.from, pair.to(), "text");
  CHECK_FALSE(pair.into.set_watched(true));
  pair.two.peers.gather(false);
  REQUIRE(pair.two.peers.next_ready() == &pair.into);
  CHECK_FALSE(pair.into.set_watched(true));  // it was not read, and announces itself again
  CHECK(pair.two.peers.next_ready() == nullptr);
  pair.two.peers.gather(false);
  CHECK(pair.two.peers.next_ready() == &pair.into);
}

TEST_CASE("a destination on another host is not sought on this one") {
  LocalDevice everywhere(kSettings, Address::any(AddressFamily::ipv4));
  LocalLink& link = everywhere.open();
  const Address elsewhere = Address::parse("192.0.2.1").with_port(link.local_address().port());
  for (uint32_t i = 0; i < 4 * kAfter; ++i) {
    send_one(link, elsewhere, "text");
    everywhere.step();
  }
  CHECK(everywhere.count(Counter::local_peers) == 0);
  CHECK(receive(link).empty());
}

TEST_CASE("a link that no engine serves any more gets no ring, and announces nothing") {
  Pair pair;
  pair.into.set_key(nullptr);
  for (uint32_t i = 0; i < kAfter + 1; ++i) send_one(pair.from, pair.to(), "by UDP");
  pair.step();
  CHECK(pair.one.count(Counter::local_peers) == 0);
  pair.into.set_key(&pair.into);
}

TEST_CASE("a ring that the receiver takes too late is ended, and keeps no place there") {
  Pair pair;
  for (uint32_t i = 0; i < kAfter + 1; ++i) send_one(pair.from, pair.to(), "by UDP");
  pair.one.step();
  pair.two.step();  // the receiver says that it is here
  pair.one.step();  // the ring is offered
  for (int i = 0; i < 4; ++i) {
    pair.one.clock.advance(std::chrono::milliseconds(1100));
    pair.one.step();
  }
  REQUIRE(pair.one.count(Counter::local_refused) == 1);
  receive(pair.into, 8);
  pair.step();
  receive(pair.into, 8);
  for (uint32_t i = 0; i < kSettings.max_rings; ++i) {
    LocalLink& another = pair.one.open();
    for (uint32_t n = 0; n < kAfter + 1; ++n) send_one(another, pair.to(), "by UDP");
    pair.step();
  }
  CHECK(pair.one.count(Counter::local_peers) == kSettings.max_rings);
}

TEST_CASE("while a ring is busy others are heard by UDP") {
  Pair pair;
  pair.earn();
  test::RawUdp other;
  REQUIRE(other.send(pair.to(), "other"));
  bool heard = false;
  for (int i = 0; i < 500 && !heard; ++i) {
    REQUIRE(send_one(pair.from, pair.to(), "ring").status == SendStatus::ok);
    for (const std::string& text : receive(pair.into, 1)) heard = heard || text == "other";
  }
  CHECK(heard);
}

TEST_CASE("a link that is watched is woken for its ring") {
  Pair pair;
  pair.earn();
  receive(pair.into);
  REQUIRE(pair.into.set_watched(true));
  REQUIRE(pair.two.peers.next_ready() == nullptr);
  REQUIRE(send_one(pair.from, pair.to(), "wake").status == SendStatus::ok);
  pair.two.peers.gather(true);
  REQUIRE(pair.two.peers.next_ready() == &pair.into);
  CHECK(receive(pair.into) == Texts{"wake"});
}

TEST_CASE("a link does not begin to be watched while its ring has something") {
  Pair pair;
  pair.earn();
  receive(pair.into);
  REQUIRE(send_one(pair.from, pair.to(), "text").status == SendStatus::ok);
  CHECK_FALSE(pair.into.set_watched(true));
  CHECK(pair.two.peers.silence() == Duration::zero());
  pair.two.peers.gather(false);
  CHECK(pair.two.peers.next_ready() == &pair.into);
  CHECK(receive(pair.into) == Texts{"text"});
  CHECK(pair.into.set_watched(true));
}

TEST_CASE("a ring that nothing was sent over for a second or two goes") {
  Pair pair;
  pair.earn();
  REQUIRE(send_one(pair.from, pair.to(), "last").status == SendStatus::ok);
  for (int i = 0; i < 3; ++i) {
    pair.one.clock.advance(std::chrono::milliseconds(1100));
    pair.step();
  }
  CHECK(receive(pair.into) == Texts{"last"});
  receive(pair.into);
  CHECK(pair.one.peers.silence() == Duration::max());
  REQUIRE(send_one(pair.from, pair.to(), "by UDP again").status == SendStatus::ok);
  CHECK(pair.local() == 1);
  CHECK(receive(pair.into) == Texts{"by UDP again"});
}

TEST_CASE(
    "when the receiver goes datagrams leave by UDP, and a new one on its port gets a ring of its "
    "own") {
  Pair pair;
  pair.earn();
  const Address to = pair.to();
  pair.two.close(pair.into);
  CHECK(send_one(pair.from, to, "to nobody").status == SendStatus::ok);
  CHECK(pair.local() == 0);
  const auto port = to.port();
  auto again =
      std::make_unique<LocalLink>(UdpLink::open(kLoopback.with_port(port)), pair.two.peers);
  again->set_key(again.get());
  for (int i = 0; i < 200 && pair.local() == 0; ++i) {
    send_one(pair.from, to, "text");
    pair.step();
    receive(*again);
  }
  CHECK(pair.local() != 0);
  again->set_key(nullptr);
}

TEST_CASE("when the sender goes its ring is read empty, and goes as well") {
  Pair pair;
  pair.earn();
  REQUIRE(send_one(pair.from, pair.to(), "last").status == SendStatus::ok);
  pair.one.close(pair.from);
  pair.step();
  CHECK(receive(pair.into) == Texts{"last"});
  receive(pair.into);
  pair.two.close(pair.into);
}

TEST_CASE("a device has no more rings than its options say, and tells of it") {
  LocalDevice one;
  LocalDevice two;
  LocalLink& from = one.open();
  for (uint32_t i = 0; i < kSettings.max_rings + 1; ++i) {
    LocalLink& into = two.open();
    const Address to = into.local_address();
    for (uint32_t n = 0; n < kAfter + 1; ++n) send_one(from, to, "text");
    // Devices of other processes may have to answer first.
    const auto outcomes = [&] {
      return one.count(Counter::local_peers) + one.count(Counter::local_refused);
    };
    for (int n = 0; n < 10'000 && outcomes() == i; ++n) {
      one.step();
      two.step();
      ::usleep(100);
    }
    receive(into);
  }
  CHECK(one.count(Counter::local_peers) == kSettings.max_rings);
  CHECK(one.count(Counter::local_refused) == 1);
}

TEST_CASE("without a descriptor for it there is no ring, and datagrams go by UDP") {
  const bool sender = GENERATE(true, false);
  const pid_t child = ::fork();
  if (child == 0) {
    Pair pair;
    const int last = ::dup(STDERR_FILENO);  // the lowest number that is free
    ::close(last);
    const auto limit = [&](int descriptors) {
      rlimit now{};
      ::getrlimit(RLIMIT_NOFILE, &now);
      now.rlim_cur = static_cast<rlim_t>(descriptors);
      ::setrlimit(RLIMIT_NOFILE, &now);
    };
    // The sender has the socket, the pidfd and the memory to make, each of which may be one too
    // many; of the receiver, whose turn comes later, the first one is.
    size_t came = 0;
    for (int spare = 0; spare < 3; ++spare) {
      if (sender) limit(last + spare);
      for (uint32_t i = 0; i < kAfter + 1; ++i) send_one(pair.from, pair.to(), "by UDP");
      pair.one.step();
      if (!sender) limit(last + 2);
      pair.step();
      came += receive(pair.into, 8).size();
      limit(1024);
    }
    const bool all_by_udp =
        came == 3 * (kAfter + 1) && pair.local() == 0 && pair.one.count(Counter::local_peers) == 0;
    ::_exit(all_by_udp ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a receiver that is stopped holds up nobody, and goes on where it was") {
  int ports[2];
  int ends[2];
  REQUIRE(::pipe(ports) == 0);
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    LocalDevice device;
    LocalLink& into = device.open();
    const uint16_t port = into.local_address().port();
    if (::write(ports[1], &port, sizeof port) != sizeof port) ::_exit(2);
    ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
    ::close(ends[1]);
    std::string last;
    char byte = 0;
    while (::read(ends[0], &byte, 1) != 0) {  // until the other end is closed
      device.step();
      for (const std::string& text : receive(into)) last = text;
      ::usleep(100);
    }
    for (const std::string& text : receive(into, 64)) last = text;
    ::_exit(last == "last" ? 0 : 1);
  }
  uint16_t port = 0;
  REQUIRE(::read(ports[0], &port, sizeof port) == sizeof port);
  const Address to = kLoopback.with_port(port);
  LocalDevice device;
  LocalLink& from = device.open();
  LocalLink& near = device.open();
  const auto step = [&] {
    device.step();
    ::usleep(1000);
  };
  for (int i = 0; i < 10'000 && device.count(Counter::local_datagrams) == 0; ++i) {
    send_one(from, to, "earning");
    step();
  }
  REQUIRE(device.count(Counter::local_datagrams) != 0);
  ::kill(child, SIGSTOP);
  const std::string text = test::text_pattern(30000);
  uint32_t held = 0;
  for (int i = 0; i < 100; ++i) held += held_back(from, to, text);
  CHECK(held <= kTriesForRoom);
  CHECK(device.count(Counter::local_overflow) != 0);
  const Address beside = kLoopback.with_port(near.local_address().port());
  CHECK(send_one(from, beside, "beside").status == SendStatus::ok);
  CHECK(receive(near) == Texts{"beside"});
  ::kill(child, SIGCONT);
  const uint64_t before = device.count(Counter::local_overflow);
  for (int i = 0; i < 10'000; ++i) {
    send_one(from, to, "last");
    if (device.count(Counter::local_overflow) == before) break;
    step();
  }
  for (int i = 0; i < 100; ++i) step();
  send_one(from, to, "last");
  ::close(ends[1]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  for (const int fd : {ports[0], ports[1], ends[0]}) ::close(fd);
}

TEST_CASE("a ring whose receiver did not seal its memory is not used") {
  LocalDevice device;
  LocalLink& from = device.open();
  test::RawUdp into;
  UniqueFd listener;  // of the receiver, which has a name and no care
  for (uint32_t number = 0; number < kMaxLocalNames && !listener; ++number)
    listener = listen_locally(local_name(::geteuid(), kLoopback, number));
  REQUIRE(listener);
  for (uint32_t i = 0; i < kAfter + 1; ++i) send_one(from, into.address(), "by UDP");
  UniqueFd connection;
  for (int i = 0; i < 10'000 && device.count(Counter::local_refused) == 0; ++i) {
    device.step();
    if (!connection) connection = accept_locally(listener.get());
    std::array<std::byte, kLocalPacketBytes> bytes;
    const auto got = connection ? receive_packet(connection.get(), bytes) : std::nullopt;
    const auto packet = got ? decode_local_packet(bytes) : std::nullopt;
    if (!packet) continue;
    const bool asks = packet->kind == LocalPacket::Kind::ask;
    const bool offers = packet->kind == LocalPacket::Kind::offer;
    if (!asks && !offers) continue;
    send_packet(connection.get(),
                encode({.kind = asks ? LocalPacket::Kind::here : LocalPacket::Kind::taken,
                        .number = packet->number}));
  }
  CHECK(device.count(Counter::local_refused) == 1);
  CHECK(device.count(Counter::local_peers) == 0);
}

TEST_CASE("a device that requires rings sends nothing another way") {
  LocalSettings required = kSettings;
  required.required = true;
  required.after = 0;
  Pair pair(required);
  CHECK(send_one(pair.from, pair.to(), "first").status == SendStatus::would_block);
  pair.step();
  CHECK(send_one(pair.from, pair.to(), "first").status == SendStatus::ok);
  CHECK(receive(pair.into) == Texts{"first"});
  CHECK(pair.local() == 1);

  test::RawUdp stranger;
  CHECK(send_one(pair.from, stranger.address(), "no").status == SendStatus::would_block);
  SendResult refused{.status = SendStatus::would_block};
  for (int i = 0; i < 10'000 && refused.status == SendStatus::would_block; ++i) {
    pair.step();
    ::usleep(100);  // devices of other processes may have to answer first
    refused = send_one(pair.from, stranger.address(), "no");
  }
  CHECK(refused.status == SendStatus::refused);
  CHECK(refused.error == ECONNREFUSED);
  CHECK_FALSE(stranger.readable());
}

}  // namespace
}  // namespace diwarp::llp
