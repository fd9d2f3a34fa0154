// SPDX-License-Identifier: Apache-2.0
// DatagramOptions::connect_after: the system's own list of sockets tells which queue pair
// has a second one.
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "stack/support.h"

using namespace diwarp;
using namespace diwarp::test;

namespace {

constexpr uint32_t kAfter = 64;

/// UDP sockets at this port of 127.0.0.1 that are connected, or not, as /proc/net/udp has it.
size_t sockets_at(uint16_t port, bool connected) {
  std::ifstream list("/proc/net/udp");
  std::string line;
  std::getline(list, line);  // the heading
  size_t count = 0;
  while (std::getline(list, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote;
    fields >> slot >> local >> remote;
    if (!local.starts_with("0100007F:")) continue;
    const bool here = std::strtoul(local.c_str() + local.find(':') + 1, nullptr, 16) == port;
    if (here && connected == (remote != "00000000:0000")) ++count;
  }
  return count;
}

bool is_focused(const Party& party) { return sockets_at(party.address().port(), true) == 1; }

/// Two queue pairs of a type, each on a device of its own, polled by this thread alone.
struct Pair {
  explicit Pair(QpType type, uint32_t connect_after = kAfter)
      : a(one, options(type, connect_after)), b(two, options(type, connect_after)) {}

  static PartyOptions options(QpType type, uint32_t connect_after) {
    return {.datagram = {.connect_after = connect_after}, .type = type};
  }
  /// A ring's queue pairs have one socket.
  static Device open() {
    return Device::open(
        "127.0.0.1",
        {.progress = Progress::manual, .io = IoBackend::syscall, .local = LocalPath::off});
  }

  /// So many messages there and back; both devices are polled without a pause.
  void play(size_t round_trips) {
    for (size_t i = 0; i < round_trips; ++i) {
      pass(a, b);
      pass(b, a);
    }
  }
  void pass(Party& from, Party& to) {
    REQUIRE_FALSE(to.post_recv(1, 0, 64));
    REQUIRE_FALSE(from.send(to.address(), 0, 64));
    size_t came = 0;
    for (const auto end = SteadyClock::instance().now() + kPatience;
         came == 0 && SteadyClock::instance().now() < end;) {
      came += drain(to.recv_cq).size();
      drain(from.send_cq);
    }
    REQUIRE(came == 1);
  }

  Device one = open();
  Device two = open();
  Party a;
  Party b;
};

}  // namespace

TEST_CASE("queue pairs that are polled and keep sending to each other get connected sockets") {
  Pair pair(GENERATE(QpType::ud, QpType::rd));
  pair.play(2000);
  CHECK(is_focused(pair.a));
  CHECK(is_focused(pair.b));
  CHECK(sockets_at(pair.a.address().port(), false) == 1);
  pair.play(100);
}

TEST_CASE("a thread that goes to sleep gives the connected socket up and is woken as ever") {
  Pair pair(GENERATE(QpType::ud, QpType::rd));
  pair.play(2000);
  REQUIRE(is_focused(pair.b));
  CHECK(eventually([&] {
    REQUIRE_FALSE(pair.b.recv_cq.wait(1ms));
    return !is_focused(pair.b);
  }));
  for (uint64_t i = 0; i < 3; ++i) {
    REQUIRE_FALSE(pair.b.post_recv(i, 0, 64));
    REQUIRE_FALSE(pair.a.send(pair.b.address(), 0, 64));
    CHECK(pair.b.recv_cq.wait(kPatience));
  }
  pair.play(2000);
  CHECK(is_focused(pair.b));
}

TEST_CASE("strangers reach a queue pair that has a connected socket") {
  Pair pair(QpType::ud);
  Party stranger(pair.one);
  pair.play(2000);
  REQUIRE(is_focused(pair.b));
  pair.pass(stranger, pair.b);
  pair.pass(pair.b, stranger);
  CHECK(is_focused(pair.b));
}

TEST_CASE("connect_after 0 leaves queue pairs one socket") {
  Pair pair(QpType::ud, 0);
  pair.play(2000);
  CHECK_FALSE(is_focused(pair.a));
  CHECK(sockets_at(pair.a.address().port(), false) == 1);
}
