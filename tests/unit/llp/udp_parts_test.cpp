// SPDX-License-Identifier: Apache-2.0
// The parts of a UDP link by themselves.
#include <sys/uio.h>

#include <cerrno>
#include <string>
#include <vector>

#include "datagrams.h"
#include "llp/udp/udp_degradations.h"
#include "llp/udp/udp_open.h"
#include "llp/udp/udp_receiver.h"
#include "llp/udp/udp_sender.h"
#include "raw_socket.h"
#include "support/catch.h"
#include "support/contents.h"

namespace diwarp::llp {
namespace {

using test::burst_of;
using test::RawUdp;
using test::text_pattern;
using Degradations = std::vector<Counter>;
using Texts = std::vector<std::string>;

const Address kLoopback4 = Address::loopback(AddressFamily::ipv4);
constexpr size_t kLong = 3000;  // beyond what is copied and leaves without a path

UdpOptions plain() { return {.segmentation = false, .coalescing = false}; }

/// Takes messages as it is told, and keeps the first bytes of each.
struct FakePath final : SendPath {
  ssize_t send(std::span<mmsghdr> messages) override {
    ++calls;
    errno = error;
    if (result < 0 || takes == 0) return result;
    const size_t count = std::min(takes, messages.size());
    for (const mmsghdr& message : messages.first(count)) {
      const iovec& first = message.msg_hdr.msg_iov[0];
      sent.emplace_back(static_cast<const char*>(first.iov_base), 5);
    }
    return static_cast<ssize_t>(count);
  }

  size_t takes = 0;
  ssize_t result = 0;  // where it takes none
  int error = 0;
  int calls = 0;
  Texts sent;
};

struct Parts {
  explicit Parts(const UdpOptions& options = plain())
      : socket(bound_udp_socket(kLoopback4), options, false),
        sender(socket, options),
        receiver(socket, options.coalescing) {}

  UdpSocket socket;
  UdpSender sender;
  UdpReceiver receiver;
};

Texts three_long() {
  return {text_pattern(kLong, 1), text_pattern(kLong, 2), text_pattern(kLong, 3)};
}

TEST_CASE("degradations: each is told once, those before the callback within that call") {
  UdpDegradations degradations;
  CHECK_FALSE(degradations.has(Counter::gro_missing));
  degradations.add(Counter::gro_missing);
  degradations.add(Counter::gso_refused);
  CHECK(degradations.has(Counter::gro_missing));
  CHECK_FALSE(degradations.has(Counter::gso_missing));
  Degradations told;
  degradations.on_degradation([&](const Degradation& what) { told.push_back(what.counter); });
  CHECK(told == Degradations{Counter::gso_refused, Counter::gro_missing});  // as the table has them
  degradations.add(Counter::gso_refused);
  CHECK(told.size() == 2);
  degradations.add(Counter::jumbo_refused);
  CHECK(told == Degradations{Counter::gso_refused, Counter::gro_missing, Counter::jumbo_refused});
  degradations.on_degradation(nullptr);
  degradations.add(Counter::connect_refused);
  CHECK(told.size() == 3);
}

TEST_CASE("a sender's messages leave by the path that it is handed, in order") {
  Parts parts;
  RawUdp peer;
  FakePath path;
  path.takes = 2;
  const Texts texts = three_long();
  const SendResult result = parts.sender.send(burst_of(peer.address(), texts).get(), path);
  CHECK(result.status == SendStatus::ok);
  CHECK(result.sent == 3);
  CHECK(path.calls == 2);
  CHECK(path.sent == Texts{texts[0].substr(0, 5), texts[1].substr(0, 5), texts[2].substr(0, 5)});
  CHECK_FALSE(peer.readable());
}

TEST_CASE("what a sender's path takes none of leaves by system calls") {
  Parts parts;
  RawUdp peer;
  FakePath path;
  const Texts texts = three_long();
  CHECK(parts.sender.send(burst_of(peer.address(), texts).get(), path).sent == 3);
  CHECK(path.calls == 1);
  for (const std::string& text : texts) {
    const auto message = peer.receive();
    REQUIRE(message);
    CHECK(message->bytes == text);
  }
}

TEST_CASE("a short datagram alone does without the path") {
  Parts parts;
  RawUdp peer;
  FakePath path;
  CHECK(parts.sender.send(burst_of(peer.address(), {"short"}).get(), path).sent == 1);
  CHECK(path.calls == 0);
  REQUIRE(peer.receive());
}

TEST_CASE("a path that is full holds a burst up, and one that fails twice refuses a datagram") {
  Parts parts;
  RawUdp peer;
  FakePath path;
  path.result = -1;
  path.error = EAGAIN;
  const Texts texts = three_long();
  const SendResult full = parts.sender.send(burst_of(peer.address(), texts).get(), path);
  CHECK(full.status == SendStatus::would_block);
  CHECK(full.sent == 0);
  CHECK(path.calls == 1);
  path.error = EPERM;
  const SendResult refused = parts.sender.send(burst_of(peer.address(), texts).get(), path);
  CHECK(refused.status == SendStatus::refused);
  CHECK(refused.error == EPERM);
  CHECK(path.calls == 3);
}

TEST_CASE("a receiver that is told of its socket hands up what waits there, by its local number") {
  Parts parts;
  parts.socket.local_number = 7;
  RawUdp peer;
  CHECK_FALSE(parts.receiver.something_waits());
  REQUIRE(peer.send(parts.socket.local, "one"));
  REQUIRE(test::wait_readable(parts.socket.fd.get()));
  CHECK(parts.receiver.something_waits());
  ReceiveBatch batch(8, 2048, 64);
  REQUIRE(parts.receiver.receive(batch) == 1);
  CHECK(batch.datagrams()[0].local == 7);
  CHECK(batch.datagrams()[0].from == peer.address());
  CHECK_FALSE(batch.datagrams()[0].group);
  CHECK(test::texts(batch) == Texts{"one"});
}

TEST_CASE("a receiver takes what waits together in few calls, though one by one came before") {
  Parts parts;
  RawUdp peer;
  ReceiveBatch batch(64, 2048, 64);
  for (int i = 0; i < 64; ++i) {
    REQUIRE(peer.send(parts.socket.local, "lone"));
    REQUIRE(test::wait_readable(parts.socket.fd.get()));
    REQUIRE(parts.receiver.receive(batch) == 1);
  }
  constexpr size_t kTogether = 120;
  for (size_t i = 0; i < kTogether; ++i) REQUIRE(peer.send(parts.socket.local, "together"));
  REQUIRE(test::wait_readable(parts.socket.fd.get()));
  size_t received = 0;
  uint32_t calls = 0;
  while (const size_t count = parts.receiver.receive(batch)) {
    received += count;
    ++calls;
  }
  CHECK(received == kTogether);
  CHECK(calls <= UdpReceiver::kLoneBeforeTwo + 8);
}

TEST_CASE("a receiver counts what its batch and its socket have no room for") {
  UdpOptions options = plain();
  options.receive_buffer = 1;
  Parts parts(options);
  RawUdp peer;
  const std::string text = text_pattern(1000);
  for (int i = 0; i < 100; ++i) REQUIRE(peer.send(parts.socket.local, text));
  CHECK(parts.receiver.overflowed() == 0);
  ReceiveBatch batch(8, 2048, 64);
  size_t came = 0;
  while (const size_t got = parts.receiver.receive(batch)) came += got;
  parts.receiver.learn_overflow();
  CHECK(came > 0);
  CHECK(came < 100);
  CHECK(parts.receiver.overflowed() == 100 - came);
  parts.receiver.learn_overflow();
  CHECK(parts.receiver.overflowed() == 100 - came);
}

}  // namespace
}  // namespace diwarp::llp
