// SPDX-License-Identifier: Apache-2.0
// Streams between two devices of one host: which bytes go through rings, in which order they come
// with those that went by TCP, and how each end of a connection shows at the other. Both devices
// are in this process, and take turns.
#include "llp/local/local_stream.h"

#include <poll.h>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "llp/local/local_connector.h"
#include "llp/local/local_peers.h"
#include "llp/tcp/tcp_connector.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

const Address kLoopback = Address::loopback(AddressFamily::ipv4);
constexpr uint32_t kAfter = 4;
constexpr LocalSettings kSettings = {.after = kAfter, .ring = kLeastRing, .max_rings = 4};

struct StreamDevice {
  explicit StreamDevice(const LocalSettings& settings = kSettings)
      : peers(kLoopback, settings, tcp, counters, clock) {}

  /// As an engine does: whether the stream announced itself.
  bool step() {
    bool announced = false;
    for (int i = 0; i < 2; ++i) {
      peers.gather(true);
      while (peers.next_ready() != nullptr) announced = true;
    }
    return announced;
  }
  void serve(std::unique_ptr<Stream> connected) {
    stream = connector.serve(std::move(connected));
    stream->set_key(stream.get());
  }
  uint64_t count(Counter counter) const { return counters.get(counter); }

  Counters counters;
  ManualClock clock;
  TcpConnector tcp;
  LocalPeers peers;
  LocalConnector connector{tcp, [this] { return &peers; }};
  std::unique_ptr<Stream> stream;
};

void wait_for(int descriptor, short events) {
  pollfd one{.fd = descriptor, .events = events, .revents = 0};
  REQUIRE(::poll(&one, 1, 10'000) == 1);
}

/// A connection between two devices, whose ends are served.
struct Connected {
  explicit Connected(const LocalSettings& settings = kSettings) : Connected(settings, settings) {}
  Connected(const LocalSettings& first, const LocalSettings& second) : one(first), two(second) {
    auto listener = two.connector.listen(kLoopback, {});
    std::error_code error;
    auto pending = one.connector.connect(kLoopback, listener->local_address(), error);
    REQUIRE(pending);
    wait_for(pending->descriptor(), POLLOUT);
    one.serve(pending->finish().stream);
    wait_for(listener->descriptor(), POLLIN);
    two.serve(listener->accept().stream);
  }
  void step() {
    for (int i = 0; i < 3; ++i) {
      one.step();
      two.step();
    }
  }
  /// Until the first end's next bytes go through a ring. What came meanwhile.
  std::string earn() {
    std::string came;
    for (uint32_t i = 0; i < kAfter; ++i) {
      send(one, "by TCP ");
      came += receive(two, 7);
    }
    step();
    return came;
  }

  static IoResult try_send(StreamDevice& from, const std::string& text) {
    const ConstBytes piece = std::as_bytes(std::span(text));
    return from.stream->send({&piece, 1});
  }
  static void send(StreamDevice& from, const std::string& text) {
    const IoResult sent = try_send(from, text);
    REQUIRE(sent.status == IoStatus::ok);
    REQUIRE(sent.bytes == text.size());
  }
  /// Up to so many bytes, waiting for each as long as need be.
  static std::string receive(StreamDevice& into, size_t bytes) {
    std::string came;
    std::vector<std::byte> room(bytes);
    for (int i = 0; i < 10'000 && came.size() < bytes; ++i) {
      const IoResult got = into.stream->receive(Bytes(room).first(bytes - came.size()));
      if (got.status == IoStatus::ok)
        came.append(reinterpret_cast<const char*>(room.data()), got.bytes);
      else if (got.status != IoStatus::would_block)
        break;
    }
    return came;
  }
  /// The end that comes next.
  static IoResult end(StreamDevice& into) {
    std::array<std::byte, 64> room;
    IoResult got{IoStatus::would_block};
    for (int i = 0; i < 10'000 && got.status == IoStatus::would_block; ++i)
      got = into.stream->receive(room);
    return got;
  }

  StreamDevice one;
  StreamDevice two;
};

TEST_CASE("a stream between two devices of a host goes through a ring after some sends") {
  Connected pair;
  CHECK(pair.earn() == "by TCP by TCP by TCP by TCP ");
  CHECK(pair.one.count(Counter::local_peers) == 1);
  CHECK(pair.one.count(Counter::local_bytes) == 0);
  pair.send(pair.one, "by the ring");
  CHECK(pair.one.count(Counter::local_bytes) == 11);
  CHECK(pair.receive(pair.two, 11) == "by the ring");
  // The way back is another direction, and still goes by TCP.
  pair.send(pair.two, "back");
  CHECK(pair.receive(pair.one, 4) == "back");
  CHECK(pair.two.count(Counter::local_bytes) == 0);
}

TEST_CASE("bytes of a ring bear no CRC, unless one of the devices wants that") {
  const bool sender_wants = GENERATE(false, true);
  const bool receiver_wants = GENERATE(false, true);
  const auto with = [](bool crc) {
    LocalSettings settings = kSettings;
    settings.crc = crc;
    return settings;
  };
  Connected pair(with(sender_wants), with(receiver_wants));
  CHECK(pair.one.stream->send_needs_crc());
  pair.earn();
  CHECK(pair.two.stream->received_needs_crc());
  pair.send(pair.one, "by the ring");
  const bool crc = sender_wants || receiver_wants;
  CHECK(pair.one.stream->send_needs_crc() == crc);
  for (const size_t bytes : {size_t{3}, size_t{8}}) {  // of one entry
    CHECK(pair.receive(pair.two, bytes).size() == bytes);
    CHECK(pair.two.stream->received_needs_crc() == crc);
  }
  REQUIRE(pair.one.stream->leave_engine());
  CHECK(pair.one.stream->send_needs_crc());
  pair.send(pair.one, "by TCP");
  CHECK(pair.receive(pair.two, 6) == "by TCP");
  CHECK(pair.two.stream->received_needs_crc());
}

TEST_CASE("bytes that went by TCP are received before those of the ring, however late") {
  Connected pair;
  for (uint32_t i = 0; i < kAfter; ++i) pair.send(pair.one, std::to_string(i));
  pair.step();
  pair.send(pair.one, "ring");
  REQUIRE(pair.one.count(Counter::local_bytes) == 4);
  CHECK(pair.receive(pair.two, 2) == "01");
  CHECK(pair.receive(pair.two, 100) == "23ring");
}

TEST_CASE("a ring that nothing was sent over for a second goes, and bytes go by TCP again") {
  Connected pair;
  pair.earn();
  pair.send(pair.one, "ring");
  for (int i = 0; i < 3; ++i) {
    pair.one.clock.advance(std::chrono::milliseconds(1100));
    pair.step();
  }
  const uint64_t local = pair.one.count(Counter::local_bytes);
  pair.send(pair.one, "TCP");
  CHECK(pair.one.count(Counter::local_bytes) == local);
  CHECK(pair.receive(pair.two, 100) == "ringTCP");
  pair.earn();
  pair.send(pair.one, "ring again");
  CHECK(pair.one.count(Counter::local_bytes) == local + 10);
  CHECK(pair.receive(pair.two, 10) == "ring again");
}

TEST_CASE("a full ring makes the sender wait, and loses nothing") {
  Connected pair;
  pair.earn();
  const std::string text = test::text_pattern(1 << 20);
  size_t sent = 0;
  std::string came;
  bool was_full = false;
  for (int i = 0; i < 10'000 && came.size() < text.size(); ++i) {
    const IoResult result = pair.try_send(pair.one, text.substr(sent));
    was_full = was_full || result.status == IoStatus::would_block;
    if (result.status == IoStatus::ok) sent += result.bytes;
    if (was_full || i % 3 == 0) came += pair.receive(pair.two, 10'000);
  }
  CHECK(was_full);
  CHECK(came == text);
  CHECK(pair.one.count(Counter::local_overflow) == 0);
}

TEST_CASE("a sender that was refused often is told of room once the receiver makes some") {
  Connected pair;
  pair.earn();
  const std::string text(100'000, 'x');
  size_t sent = 0;
  bool asks = true;
  for (int i = 0; i < 10'000 && asks; ++i) {
    const IoResult result = pair.try_send(pair.one, text);
    sent += result.bytes;
    asks =
        result.status == IoStatus::ok || pair.one.stream->room_notice() != RoomNotice::announcement;
  }
  REQUIRE_FALSE(asks);
  CHECK_FALSE(pair.one.step());
  CHECK(pair.receive(pair.two, sent).size() == sent);
  CHECK(pair.one.step());
  CHECK(pair.try_send(pair.one, "room").status == IoStatus::ok);
}

TEST_CASE("a sender that waits for room keeps its ring, however long") {
  Connected pair;
  pair.earn();
  const std::string text(100'000, 'x');
  size_t sent = 0;
  while (pair.one.stream->room_notice() != RoomNotice::announcement)
    sent += pair.try_send(pair.one, text).bytes;
  for (int second = 0; second < 5; ++second) {
    pair.one.clock.advance(std::chrono::seconds(2));
    CHECK_FALSE(pair.one.step());
  }
  CHECK(pair.one.stream->room_notice() == RoomNotice::announcement);
  CHECK(pair.receive(pair.two, sent).size() == sent);
  CHECK(pair.one.step());
}

TEST_CASE("the end in order comes after all bytes of the ring") {
  Connected pair;
  pair.earn();
  pair.send(pair.one, "last");
  SECTION("of one direction") { pair.one.stream->shutdown_send(); }
  SECTION("of the stream") { pair.one.stream.reset(); }
  CHECK(pair.receive(pair.two, 4) == "last");
  CHECK(pair.end(pair.two).status == IoStatus::closed);
}

TEST_CASE("a reset shows though the ring has bytes") {
  Connected pair;
  pair.earn();
  for (int i = 0; i < 100; ++i) pair.send(pair.one, "unread");
  pair.one.stream->abort();
  std::array<std::byte, 1> room;
  IoResult got;
  for (int i = 0; i < 200 && got.status == IoStatus::ok; ++i) got = pair.two.stream->receive(room);
  CHECK(got.status == IoStatus::failed);
  CHECK(got.error == ECONNRESET);
}

TEST_CASE("a stream that leaves the engine sends by TCP what follows its ring") {
  Connected pair;
  pair.earn();
  pair.send(pair.one, "ring ");
  REQUIRE(pair.one.stream->leave_engine());
  pair.send(pair.one, "final");
  pair.one.stream->shutdown_send();
  CHECK(pair.receive(pair.two, 100) == "ring final");
  CHECK(pair.end(pair.two).status == IoStatus::closed);
}

TEST_CASE("a ring that is full has room for its end all the same") {
  Connected pair;
  pair.earn();
  const std::string text(100'000, 'x');
  size_t sent = 0;
  for (IoResult result; result.status == IoStatus::ok;) {
    result = pair.try_send(pair.one, text);
    sent += result.bytes;
  }
  REQUIRE(pair.one.stream->leave_engine());
  pair.send(pair.one, "final");
  CHECK(pair.receive(pair.two, sent + 5) == std::string(sent, 'x') + "final");
}

TEST_CASE("a stream that stays on the wire earns no ring, and may have one to read") {
  Connected pair;
  pair.one.stream->stay_on_wire();
  pair.earn();
  pair.send(pair.one, "by TCP");
  CHECK(pair.receive(pair.two, 6) == "by TCP");
  CHECK(pair.one.count(Counter::local_peers) == 0);
  for (uint32_t i = 0; i < kAfter; ++i) pair.send(pair.two, "back");
  pair.step();
  pair.send(pair.two, "ring");
  CHECK(pair.two.count(Counter::local_bytes) == 4);
  CHECK(pair.receive(pair.one, 100) == "backbackbackbackring");
}

TEST_CASE("a stream over a descriptor that was handed in stays on the wire") {
  StreamDevice device;
  auto listener = device.tcp.listen(kLoopback, {});
  std::error_code error;
  auto pending = device.tcp.connect(kLoopback, listener->local_address(), error);
  wait_for(pending->descriptor(), POLLOUT);
  auto connected = pending->finish().stream;
  device.serve(device.connector.adopt(connected->release()));
  for (uint32_t i = 0; i < 4 * kAfter; ++i) Connected::send(device, "text");
  device.step();
  CHECK(device.count(Counter::local_peers) == 0);
}

TEST_CASE("a stream to a peer that meets nobody goes by TCP") {
  StreamDevice device;
  auto listener = device.tcp.listen(kLoopback, {});
  std::error_code error;
  auto pending = device.connector.connect(kLoopback, listener->local_address(), error);
  wait_for(pending->descriptor(), POLLOUT);
  device.serve(pending->finish().stream);
  for (uint32_t i = 0; i < 50 * kAfter; ++i) {
    Connected::send(device, "text");
    device.step();
  }
  CHECK(device.count(Counter::local_peers) == 0);
  CHECK(device.count(Counter::local_refused) == 0);
}

TEST_CASE("a stream that is watched is woken for its ring") {
  Connected pair;
  pair.earn();
  CHECK(pair.receive(pair.two, 1).empty());
  REQUIRE(pair.two.stream->set_watched(true));
  CHECK_FALSE(pair.two.step());
  pair.send(pair.one, "wake");
  CHECK(pair.two.step());
  CHECK_FALSE(pair.two.stream->set_watched(true));
  CHECK(pair.receive(pair.two, 4) == "wake");
  CHECK(pair.two.stream->set_watched(true));
}

TEST_CASE("a stream that is watched while its ring has more announces itself") {
  Connected pair;
  pair.earn();
  pair.send(pair.one, "in parts");
  CHECK(pair.receive(pair.two, 2) == "in");
  pair.two.step();
  CHECK_FALSE(pair.two.stream->set_watched(true));
  CHECK(pair.two.step());
  CHECK(pair.receive(pair.two, 6) == " parts");
  CHECK(pair.two.stream->set_watched(true));
  CHECK_FALSE(pair.two.step());
}

TEST_CASE("what reaches a stream by TCP while its peer is in a ring breaks it") {
  Connected pair;
  pair.earn();
  pair.send(pair.one, "ring");
  CHECK(pair.receive(pair.two, 4) == "ring");
  auto& local = static_cast<LocalStream&>(*pair.one.stream);
  const ConstBytes piece = std::as_bytes(std::span("past the ring"));
  REQUIRE(local.inner().send({&piece, 1}).status == IoStatus::ok);
  CHECK(pair.end(pair.two).status == IoStatus::failed);
}

/// A stream below another, in whose receive() something happens.
struct Hooked final : ForwardingStream {
  explicit Hooked(std::unique_ptr<Stream> below) : ForwardingStream(std::move(below)) {}
  IoResult receive(Bytes buffer) override {
    if (const auto happens = std::exchange(next, {})) happens();
    return inner().receive(buffer);
  }
  std::function<void()> next;
};

TEST_CASE("what is read while the peer enters a ring and leaves it again comes in its order") {
  StreamDevice one;
  StreamDevice two;
  auto listener = two.tcp.listen(kLoopback, {});
  std::error_code error;
  auto pending = one.connector.connect(kLoopback, listener->local_address(), error);
  wait_for(pending->descriptor(), POLLOUT);
  one.serve(pending->finish().stream);
  wait_for(listener->descriptor(), POLLIN);
  auto below = std::make_unique<Hooked>(listener->accept().stream);
  Hooked& hooked = *below;
  two.serve(std::make_unique<LocalStream>(std::move(below), true));
  for (uint32_t i = 0; i < kAfter; ++i) Connected::send(one, std::to_string(i));
  for (int i = 0; i < 3; ++i) {
    one.step();
    two.step();
  }
  REQUIRE(one.count(Counter::local_peers) == 1);
  // Between the look at the ring and the look at the socket.
  SECTION("with bytes behind the ring") {
    hooked.next = [&] {
      Connected::send(one, " ring ");
      REQUIRE(one.count(Counter::local_bytes) == 6);
      REQUIRE(one.stream->leave_engine());
      Connected::send(one, "final");
    };
    CHECK(Connected::receive(two, 100) == "0123 ring final");
  }
  SECTION("with the end of the stream behind the ring") {
    REQUIRE(Connected::receive(two, 4) == "0123");
    hooked.next = [&] {
      Connected::send(one, "ring");
      one.stream->shutdown_send();
      wait_for(hooked.descriptor(), POLLRDHUP);
    };
    CHECK(Connected::receive(two, 100) == "ring");
    CHECK(Connected::end(two).status == IoStatus::closed);
  }
}

TEST_CASE("a ring that is given up before anything was sent over it changes nothing") {
  Connected pair;
  pair.earn();
  for (int i = 0; i < 3; ++i) {
    pair.one.clock.advance(std::chrono::milliseconds(1100));
    pair.step();
  }
  pair.send(pair.one, "by TCP");
  CHECK(pair.one.count(Counter::local_bytes) == 0);
  CHECK(pair.receive(pair.two, 6) == "by TCP");
  pair.earn();
  pair.send(pair.one, "ring");
  CHECK(pair.one.count(Counter::local_bytes) == 4);
  CHECK(pair.receive(pair.two, 4) == "ring");
}

TEST_CASE("bytes of any sizes come as they were sent, by whatever way they went") {
  Connected pair;
  Random random(5);
  const std::string all = test::text_pattern(3'000'000);
  size_t sent = 0;
  std::string came;
  while (came.size() < all.size()) {
    for (int pauses = random.below(10) == 0 ? 3 : 0; pauses != 0; --pauses) {
      pair.one.clock.advance(std::chrono::milliseconds(1100));
      pair.step();
    }
    pair.step();
    std::vector<ConstBytes> pieces;
    size_t at = sent;
    for (size_t count = 1 + random.below(100); count != 0 && at < all.size(); --count) {
      const size_t size =
          std::min(all.size() - at, random.below(4) == 0 ? random.below(9000) : random.below(70));
      pieces.push_back(std::as_bytes(std::span(all)).subspan(at, size));
      at += size;
    }
    if (at != sent) {
      const IoResult result = pair.one.stream->send(pieces);
      REQUIRE(result.status != IoStatus::failed);
      sent += result.bytes;
    }
    std::vector<std::byte> first(1 + random.below(300));
    std::vector<std::byte> second(1 + random.below(30'000));
    const std::array<Bytes, 2> room{first, second};
    const IoResult got = pair.two.stream->receive_into(room);
    REQUIRE((got.status == IoStatus::ok || got.status == IoStatus::would_block));
    const size_t head = std::min(got.bytes, first.size());
    came.append(reinterpret_cast<const char*>(first.data()), head);
    came.append(reinterpret_cast<const char*>(second.data()), got.bytes - head);
  }
  CHECK(came == all);
  CHECK(pair.one.count(Counter::local_peers) > 1);
}

TEST_CASE("a device that requires rings sends nothing over a stream before there is one") {
  LocalSettings required = kSettings;
  required.required = true;
  Connected pair(required);
  CHECK(pair.try_send(pair.one, "first").status == IoStatus::would_block);
  CHECK(pair.one.stream->room_notice() == RoomNotice::none);
  pair.step();
  pair.send(pair.one, "first");
  CHECK(pair.one.count(Counter::local_bytes) == 5);
  CHECK(pair.receive(pair.two, 5) == "first");
}

TEST_CASE("and fails where there is none to be had") {
  LocalSettings required = kSettings;
  required.required = true;
  StreamDevice device(required);
  auto listener = device.tcp.listen(kLoopback, {});
  std::error_code error;
  auto pending = device.connector.connect(kLoopback, listener->local_address(), error);
  wait_for(pending->descriptor(), POLLOUT);
  device.serve(pending->finish().stream);
  CHECK(Connected::try_send(device, "text").status == IoStatus::would_block);
  device.clock.advance(std::chrono::seconds(6));
  CHECK(Connected::try_send(device, "text").error == ECONNREFUSED);
}

}  // namespace
}  // namespace diwarp::llp
