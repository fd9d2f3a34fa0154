// SPDX-License-Identifier: Apache-2.0
#include "llp/poller.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <chrono>

#include "diwarp/error.h"
#include "raw_socket.h"
#include "support/catch.h"

namespace diwarp::llp {
namespace {

using namespace std::chrono_literals;

struct SocketPair {
  SocketPair() {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    near.reset(ends[0]);
    far.reset(ends[1]);
  }
  UniqueFd near;
  UniqueFd far;
};

void put(const UniqueFd& fd) { REQUIRE(::send(fd.get(), "x", 1, 0) == 1); }
void take(const UniqueFd& fd) {
  char byte = 0;
  REQUIRE(::recv(fd.get(), &byte, 1, 0) == 1);
}

TEST_CASE("a poller reports a readable descriptor with its key until it is read") {
  Poller poller;
  SocketPair sockets;
  int key = 0;
  poller.add(sockets.near.get(), &key);
  std::array<PollEvent, 4> events;
  CHECK(poller.wait(events, 0ns) == 0);
  put(sockets.far);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(poller.wait(events, 5s) == 1);
    CHECK(events[0].key == &key);
    CHECK(events[0].readable);
    CHECK_FALSE(events[0].writable);
    CHECK_FALSE(events[0].failed);
  }
  take(sockets.near);
  CHECK(poller.wait(events, 0ns) == 0);
}

TEST_CASE("a poller reports readable and writable descriptors only while that is wanted") {
  Poller poller;
  SocketPair sockets;
  std::array<PollEvent, 4> events;
  poller.add(sockets.near.get(), &sockets, true);
  REQUIRE(poller.wait(events, 5s) == 1);
  CHECK(events[0].writable);
  CHECK_FALSE(events[0].readable);
  int other_key = 0;
  poller.modify(sockets.near.get(), &other_key, true, false);
  CHECK(poller.wait(events, 0ns) == 0);
  put(sockets.far);
  REQUIRE(poller.wait(events, 5s) == 1);
  CHECK(events[0].key == &other_key);
  CHECK(events[0].readable);
  CHECK_FALSE(events[0].writable);
  poller.modify(sockets.near.get(), &other_key, false, true);
  REQUIRE(poller.wait(events, 5s) == 1);
  CHECK_FALSE(events[0].readable);
  CHECK(events[0].writable);
  poller.modify(sockets.near.get(), &other_key, false, false);
  CHECK(poller.wait(events, 0ns) == 0);
}

TEST_CASE("a poller says when the peer is gone") {
  Poller poller;
  SocketPair sockets;
  poller.add(sockets.near.get(), nullptr);
  sockets.far.reset();
  std::array<PollEvent, 1> events;
  REQUIRE(poller.wait(events, 5s) == 1);
  CHECK(events[0].failed);
  CHECK(events[0].readable);
}

TEST_CASE("a removed descriptor is reported no more") {
  Poller poller;
  SocketPair sockets;
  poller.add(sockets.near.get(), nullptr);
  put(sockets.far);
  poller.remove(sockets.near.get());
  std::array<PollEvent, 1> events;
  CHECK(poller.wait(events, 0ns) == 0);
}

TEST_CASE("a poller refuses what cannot be polled") {
  Poller poller;
  CHECK_THROWS_AS(poller.add(-1, nullptr), Error);
  SocketPair sockets;
  poller.add(sockets.near.get(), nullptr);
  CHECK_THROWS_AS(poller.add(sockets.near.get(), nullptr), Error);
}

TEST_CASE("more ready descriptors than events come in turns") {
  Poller poller;
  std::array<SocketPair, 5> sockets;
  for (SocketPair& pair : sockets) {
    poller.add(pair.near.get(), &pair);
    put(pair.far);
  }
  std::array<PollEvent, 2> events;
  size_t seen = 0;
  for (int turn = 0; turn < 20 && seen < sockets.size(); ++turn) {
    const size_t count = poller.wait(events, 5s);
    CHECK(count <= events.size());
    for (size_t i = 0; i < count; ++i) {
      take(static_cast<SocketPair*>(events[i].key)->near);
      ++seen;
    }
  }
  CHECK(seen == sockets.size());
}

TEST_CASE("a wake before the wait makes it return once, however often it was called") {
  Poller poller;
  std::array<PollEvent, 2> events;
  poller.wake();
  poller.wake();
  CHECK(poller.wait(events, -1ns) == 0);
  pollfd polled = {poller.descriptor(), POLLIN, 0};
  CHECK(::poll(&polled, 1, 0) == 0);
}

TEST_CASE("a look without waiting leaves a wake to a wait") {
  Poller poller;
  std::array<PollEvent, 2> events;
  poller.wake();
  CHECK(poller.wait(events, 0ns) == 0);
  CHECK(poller.wait(events, -1ns) == 0);
}

TEST_CASE("a wake does not hide the events beside it") {
  Poller poller;
  SocketPair sockets;
  poller.add(sockets.near.get(), &sockets);
  put(sockets.far);
  poller.wake();
  std::array<PollEvent, 1> events;
  size_t found = 0;
  for (int i = 0; i < 3 && found == 0; ++i) found = poller.wait(events, 5s);
  REQUIRE(found == 1);
  CHECK(events[0].key == &sockets);
}

TEST_CASE("a poller's own descriptor is readable while an event or a wake waits") {
  Poller poller;
  pollfd polled = {poller.descriptor(), POLLIN, 0};
  CHECK(::poll(&polled, 1, 0) == 0);
  poller.wake();
  CHECK(::poll(&polled, 1, 0) == 1);
  CHECK((::fcntl(poller.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a wait without events lasts its timeout, below a millisecond as well") {
  Poller poller;
  std::array<PollEvent, 1> events;
  for (const Duration timeout : {Duration{200us}, Duration{1500us}}) {
    const auto start = std::chrono::steady_clock::now();
    CHECK(poller.wait(events, timeout) == 0);
    CHECK(std::chrono::steady_clock::now() - start >= timeout);
  }
}

TEST_CASE("the longest of timeouts does not overflow") {
  Poller poller;
  poller.wake();
  CHECK(poller.wait({}, Duration::max()) == 0);
}

volatile sig_atomic_t alarms = 0;

TEST_CASE("signals do not shorten a wait") {
  struct sigaction ignored {};
  struct sigaction counting {};
  counting.sa_handler = [](int) { alarms = alarms + 1; };
  REQUIRE(::sigaction(SIGALRM, &counting, &ignored) == 0);
  const itimerval every = {{0, 5000}, {0, 5000}};
  const itimerval never = {};
  Poller poller;
  std::array<PollEvent, 1> events;
  ::setitimer(ITIMER_REAL, &every, nullptr);
  const auto start = std::chrono::steady_clock::now();
  const size_t count = poller.wait(events, 60ms);
  const auto lasted = std::chrono::steady_clock::now() - start;
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &ignored, nullptr);
  CHECK(count == 0);
  CHECK(lasted >= 60ms);
  CHECK(alarms > 0);
}

}  // namespace
}  // namespace diwarp::llp
