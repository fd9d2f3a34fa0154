// SPDX-License-Identifier: Apache-2.0
/// The device of a process. All but the impairment of its datagrams is in the public options.
#include "soak/device.h"

#include <memory>
#include <utility>

#include "llp/impairment/impairment.h"
#include "llp/udp/focused_udp_link.h"
#include "rnic/device.h"
#include "verbs/handle_access.h"

namespace soak {

namespace {

using diwarp::Random;
using namespace std::chrono_literals;

/// Up to `most`, and none at all in half of the lives.
double some(Random& random, double most) { return random.chance(0.5) ? 0 : random.unit() * most; }

diwarp::llp::Impairment draw_impairment(Random& random) {
  diwarp::llp::Impairment impairment;
  impairment.seed = random.next();
  impairment.drop = some(random, 0.05);
  impairment.corrupt = some(random, 0.01);
  impairment.truncate = some(random, 0.01);
  impairment.duplicate = some(random, 0.03);
  impairment.reorder = some(random, 0.05);
  impairment.reorder_depth = 1 + static_cast<uint32_t>(random.below(8));
  return impairment;
}

diwarp::rnic::DatagramLinkFactory impaired_links(diwarp::llp::Impairment impairment) {
  return [impairment](
             const diwarp::Address& local,
             const diwarp::DatagramOptions& options) -> std::unique_ptr<diwarp::llp::DatagramLink> {
    return std::make_unique<diwarp::llp::ImpairedDatagramLink>(
        diwarp::llp::FocusedUdpLink::open(local, {}, options.connect_after), impairment);
  };
}

diwarp::DeviceOptions draw_options(Random& random) {
  diwarp::DeviceOptions options;
  options.progress = random.chance(0.8) ? diwarp::Progress::thread : diwarp::Progress::manual;
  options.io = random.chance(0.7) ? diwarp::IoBackend::syscall : diwarp::IoBackend::uring;
  options.zerocopy_from = random.chance(0.7) ? 0 : 4096;
  options.udp_segmentation = random.chance(0.8);
  options.udp_coalescing = random.chance(0.8);
  return options;
}

diwarp::Device open_device(const Settings& settings, Random& random, bool& zerocopy) {
  const diwarp::DeviceOptions options = draw_options(random);
  zerocopy = options.zerocopy_from != 0;
  // Without impairment the device has the links of its own, io_uring's among them.
  if (!settings.impaired || random.chance(0.3))
    return diwarp::Device::open(settings.address, options);
  diwarp::rnic::DeviceParts parts;
  parts.datagram_links = impaired_links(draw_impairment(random));
  return diwarp::handle_of<diwarp::Device>(std::make_shared<diwarp::rnic::Device>(
      diwarp::Address::parse(settings.address), options, std::move(parts)));
}

diwarp::CmId open_listener(const diwarp::Device& device, const diwarp::CmEventChannel& channel) {
  diwarp::CmId listener(device, channel);
  listener.bind(device.address());
  listener.listen();
  return listener;
}

}  // namespace

Handles::Handles(const Settings& settings, Random& random)
    : device(open_device(settings, random, zerocopy)),
      pd(device),
      cq(device, random.chance(0.7) ? 8192 : 64),
      shared_cq(device, kSharedReceives),
      shared(pd, {.max_wr = kSharedReceives}),
      listener(open_listener(device, channel)) {}

}  // namespace soak
