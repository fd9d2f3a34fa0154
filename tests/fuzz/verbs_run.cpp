// SPDX-License-Identifier: Apache-2.0
#include "fuzz/verbs_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "rnic/device.h"
#include "verbs/handle_access.h"

namespace diwarp::fuzz {
namespace {

using namespace std::chrono_literals;

constexpr int kMostSteps = 100000;

Device open_device(size_t index, const Clock& clock,
                   const std::shared_ptr<llp::MemoryNetwork>& network) {
  rnic::DeviceParts parts;
  parts.clock = &clock;
  parts.datagram_links = [network](const Address& local, const DatagramOptions& options) {
    return network->open(local, options.group.loopback);
  };
  const DeviceOptions options{.progress = Progress::manual, .io = IoBackend::syscall};
  const Address host = Address::parse("10.0.0." + std::to_string(index + 1));
  return handle_of<Device>(std::make_shared<rnic::Device>(host, options, std::move(parts)));
}

}  // namespace

VerbsHosts::VerbsHosts(Input& in)
    : network(llp::MemoryNetwork::create({.queue_datagrams = in.flag() ? 16U : 1024U})) {
  for (size_t i = 0; i < kDevices; ++i) {
    devices.push_back(open_device(i, clock, network));
    channels.emplace_back(devices[i]);
    events.emplace_back(devices[i]);
  }
}

void VerbsHosts::settle() {
  for (int step = 0; step < kMostSteps; ++step) {
    size_t work = 0;
    for (Device& device : devices) work += device.progress();
    if (work == 0) return;
  }
  fail("the devices never come to rest");
}

void VerbsHosts::pass_time(Input& in) {
  constexpr std::array<Duration, 8> kSteps{1ms, 5ms, 20ms, 100ms, 1100ms, 5s, 12s, 61s};
  clock.advance(kSteps[in.below(kSteps.size())]);
  settle();
}

bool VerbsSlots::has_cq(uint64_t serial) const {
  return std::ranges::any_of(cqs, [&](const auto& cq) { return cq && cq->serial == serial; });
}

}  // namespace diwarp::fuzz
