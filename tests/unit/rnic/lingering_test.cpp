// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "rnic/cm/control.h"
#include "rnic/device.h"
#include "support/catch.h"

using namespace diwarp;

/// Connections that have ended here and wait for their peers to close their side.

namespace {

/// Two ends of a connection; nothing reads the second.
std::pair<UniqueFd, UniqueFd> ends() {
  std::array<int, 2> fds{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()) == 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

}  // namespace

TEST_CASE("connections beyond those that may linger are closed at once and counted") {
  constexpr size_t kMore = 3;
  const auto device = std::make_shared<rnic::Device>(Address::parse("127.0.0.1"),
                                                     DeviceOptions{.progress = Progress::manual});
  rnic::Control& control = device->control();
  std::vector<UniqueFd> peers;
  for (size_t i = 0; i < rnic::kMaxLingering + kMore; ++i) {
    auto [ours, theirs] = ends();
    control.linger(std::move(ours), std::vector<std::byte>(1));
    peers.push_back(std::move(theirs));
  }
  const auto limited = [&] { return device->counters().get(Counter::rc_lingers_limited); };
  const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (limited() < kMore && std::chrono::steady_clock::now() < deadline)
    device->engine().poll_step();
  CHECK(limited() == kMore);
  // What they had to say was said.
  for (const UniqueFd& peer : peers) {
    std::byte last{1};
    CHECK(::recv(peer.get(), &last, 1, MSG_DONTWAIT) == 1);
  }
}
