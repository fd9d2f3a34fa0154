// SPDX-License-Identifier: Apache-2.0
#include "llp/tcp/tcp_peer.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <iostream>
#include <utility>
#include <vector>

#include "raw_socket.h"
#include "support/catch.h"

using namespace diwarp;
using namespace diwarp::llp;
using namespace diwarp::test;
using namespace std::chrono_literals;

namespace {

struct KeepAlive {
  int on = 0;
  int idle = 0;
  int interval = 0;
  int count = 0;

  int seconds() const { return idle + interval * count; }
};

KeepAlive keep_alive_of(int fd) {
  return {.on = option_of(fd, SOL_SOCKET, SO_KEEPALIVE),
          .idle = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE),
          .interval = option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL),
          .count = option_of(fd, IPPROTO_TCP, TCP_KEEPCNT)};
}

/// Sends until the peer, which does not read, takes no more.
void fill(int fd) {
  const std::vector<std::byte> bytes(64 << 10);
  while (::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
}

}  // namespace

TEST_CASE("tcp peer: keep-alives find a dead peer within the time that is asked for") {
  auto [socket, second] = tcp_pair();
  TcpPeer first(std::move(socket));
  for (const Duration within : {2s, 3s, 5s, 7s, 60s, 3600s, 64800s}) {
    CAPTURE(within.count());
    first.keep_alive(within);
    const KeepAlive set = keep_alive_of(first.fd.get());
    CHECK(set.on == 1);
    CHECK(set.seconds() * 1s <= within);
    CHECK(set.seconds() * 1s > within - set.interval * 1s);
  }
  first.keep_alive(60s);
  CHECK(keep_alive_of(first.fd.get()).count >= static_cast<int>(kUnansweredTries));
  first.keep_alive(Duration::zero());
  CHECK(keep_alive_of(first.fd.get()).on == 0);
}

TEST_CASE("tcp peer: an idle connection has nothing outstanding") {
  auto [socket, second] = tcp_pair();
  TcpPeer first(std::move(socket));
  const std::optional<AckState> state = first.ack_state();
  REQUIRE(state);
  CHECK_FALSE(state->outstanding);
  CHECK_FALSE(state->window_closed);
  CHECK(state->probes == 0);
  CHECK_FALSE(TcpPeer(UniqueFd()).ack_state());
}

TEST_CASE("tcp peer: a window that stays closed is told, and its peer answers") {
  auto [socket, second] = tcp_pair();
  TcpPeer first(std::move(socket));
  fill(first.fd.get());
  std::optional<AckState> state;
  for (int i = 0; i < 3000 && !(state && state->window_closed); ++i) {
    ::usleep(10'000);
    state = first.ack_state();
    REQUIRE(state);
    CHECK(state->outstanding);
  }
  CHECK(state->window_closed);
}

TEST_CASE("tcp peer: the time between probes can be bounded where the kernel lets it") {
  auto [socket, second] = tcp_pair();
  TcpPeer first(std::move(socket));
  const std::optional<Duration> before = first.backoff_limit();
  if (!before) {
    std::cout << "SKIPPED: the kernel has no TCP_RTO_MAX_MS\n";
    return;
  }
  first.limit_backoff(4s);
  CHECK(first.backoff_limit() == Duration(4s));
  first.limit_backoff(1ms);
  CHECK(first.backoff_limit() == Duration(1s));
  first.limit_backoff(*before);
  CHECK(first.backoff_limit() == before);
}

TEST_CASE("tcp peer: a user timeout of somebody else's is cleared") {
  auto [socket, second] = tcp_pair();
  TcpPeer first(std::move(socket));
  const int timeout = 1000;
  REQUIRE(::setsockopt(first.fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout) ==
          0);
  first.clear_user_timeout();
  CHECK(option_of(first.fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT) == 0);
}
