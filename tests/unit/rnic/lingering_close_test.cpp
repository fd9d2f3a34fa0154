// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

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
std::pair<std::unique_ptr<llp::Stream>, UniqueFd> ends(llp::Connector& connector,
                                                       const Address& listening, int listener) {
  sockaddr_storage name;
  const socklen_t length = listening.to_sockaddr(name);
  UniqueFd ours(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(::connect(ours.get(), reinterpret_cast<sockaddr*>(&name), length) == 0);
  UniqueFd theirs(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  REQUIRE(theirs);
  return {connector.adopt(ours.release()), std::move(theirs)};
}

}  // namespace

TEST_CASE("lingering closes beyond the limit close their connections at once and are counted") {
  constexpr size_t kMore = 3;
  const auto device = std::make_shared<rnic::Device>(Address::parse("127.0.0.1"),
                                                     DeviceOptions{.progress = Progress::manual});
  rnic::Control& control = device->control();
  llp::Connector& connector = device->connector();
  const auto listener = connector.listen(Address::parse("127.0.0.1"), {16});
  std::vector<UniqueFd> peers;
  for (size_t i = 0; i < rnic::kMaxLingeringCloses + kMore; ++i) {
    auto [ours, theirs] = ends(connector, listener->local_address(), listener->descriptor());
    control.start_lingering_close(std::move(ours), std::vector<std::byte>(1));
    peers.push_back(std::move(theirs));
  }
  const auto limited = [&] { return device->counters().get(Counter::rc_lingers_limited); };
  const Time deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (limited() < kMore && std::chrono::steady_clock::now() < deadline)
    device->engine().poll_step();
  CHECK(limited() == kMore);
  // Their final bytes were sent.
  for (const UniqueFd& peer : peers) {
    std::byte last{1};
    CHECK(::recv(peer.get(), &last, 1, 0) == 1);
  }
}
