// SPDX-License-Identifier: Apache-2.0
#include "compat/verbs/long_waits.h"

#include <diwarp/device.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "compat/common/immortal.h"
#include "support/catch.h"

using namespace diwarp::compat;

namespace {

constexpr std::chrono::seconds kPatience(60);

class Channel final : public WaitingChannel {
 public:
  void on_news() override { ++told; }
  std::atomic<int> told{0};
};

/// Its thread runs until the process ends.
LongWaits& waits() {
  static Immortal<diwarp::Device> device(
      diwarp::Device::open(diwarp::Address::loopback(diwarp::AddressFamily::ipv4)));
  static Immortal<LongWaits> only(*device);
  return *only;
}

bool told_in_time(const Channel& channel, int times) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (channel.told < times && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return channel.told >= times;
}

}  // namespace

TEST_CASE("A wait for an event ends now and then although no peer sends anything") {
  Channel channel;
  waits().add(channel);
  {
    const WaitingChannel::Wait waiting(channel);
    waits().watch();
    CHECK(told_in_time(channel, 1));
    CHECK(told_in_time(channel, 2));
  }
  waits().remove(channel);
}

TEST_CASE("A channel whose threads do not wait is told nothing") {
  Channel idle;
  Channel waiting;
  waits().add(idle);
  waits().add(waiting);
  {
    const WaitingChannel::Wait wait(waiting);
    waits().watch();
    CHECK(told_in_time(waiting, 1));
    CHECK(idle.told == 0);
  }
  waits().remove(idle);
  waits().remove(waiting);
}
