// SPDX-License-Identifier: Apache-2.0
#include "testbed.h"

#include <stdexcept>
#include <utility>

#include "rnic/device.h"
#include "verbs/handle_access.h"

namespace diwarp::explore {

Testbed::Testbed() {
  for (size_t side = 0; side < kSides; ++side) {
    rnic::DeviceParts parts;
    parts.clock = &clock;
    parts.datagram_links = [this, side](const Address& local, const DatagramOptions&) {
      return wire.attach(side, network->open(local));
    };
    const Address host = Address::parse(side == 0 ? "10.0.0.1" : "10.0.0.2");
    const DeviceOptions options{.progress = Progress::manual, .io = IoBackend::syscall};
    devices.push_back(
        handle_of<Device>(std::make_shared<rnic::Device>(host, options, std::move(parts))));
  }
}

void Testbed::begin_run() { wire.reset(); }

void Testbed::settle() {
  constexpr int kMostSteps = 100000;
  for (int step = 0; step < kMostSteps; ++step)
    if (devices[0].progress() + devices[1].progress() == 0) return;
  throw std::runtime_error("The devices never come to rest");
}

}  // namespace diwarp::explore
