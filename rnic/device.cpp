// SPDX-License-Identifier: Apache-2.0
#include "rnic/device.h"

#include <boost/system/system_error.hpp>
#include <utility>

#include "base/crc32c.h"
#include "base/log.h"
#include "diwarp/error.h"
#include "llp/tcp/tcp_connector.h"
#include "llp/udp/focused_udp.h"
#include "llp/udp/udp_support.h"
#include "llp/uring/uring_connector.h"
#include "llp/uring/uring_udp.h"
#include "rnic/cm/control.h"
#include "rnic/open_device.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

namespace {

/// One line tells of a ring that was wanted and cannot be had.
Io choose_io(IoBackend wanted, llp::UringOptions ring, Counters& counters) {
  const bool asked = wanted != IoBackend::automatic;
  if (!asked && automatic_io() == IoBackend::syscall)
    return {nullptr, "automatic: they were measured faster in every mode"};
  if (wanted == IoBackend::syscall) return {nullptr, "asked for"};
  Io io{nullptr, asked ? "asked for" : "chosen automatically"};
  std::string why_not;
  ring.counters = &counters;
  io.ring = llp::UringQueue::create(ring, why_not);
  if (io.ring) return io;
  io.reason = "io_uring was " + io.reason + ", but " + why_not;
  log::warn(io.reason + "; bytes are moved by system calls");
  return io;
}

llp::UdpOptions udp_options(const DeviceOptions& options) {
  return {.receive_buffer = options.udp_receive_buffer,
          .send_buffer = options.udp_send_buffer,
          .offload = options.offload,
          .busy_poll = options.busy_poll};
}

DatagramLinkFactory udp_links(const DeviceOptions& options, std::shared_ptr<llp::UringQueue> ring) {
  return [of_device = udp_options(options), ring = std::move(ring)](
             const Address& local,
             const DatagramOptions& datagram) -> std::unique_ptr<llp::DatagramLink> {
    llp::UdpOptions udp = of_device;
    udp.fragment = datagram.jumbo;
    udp.share_port = datagram.share_port;
    udp.multicast_hops = datagram.group.hops;
    udp.multicast_loopback = datagram.group.loopback;
    udp.multicast_interface = datagram.group.interface;
    if (ring != nullptr)
      return datagram.descriptor >= 0 ? llp::UringUdpLink::adopt(ring, datagram.descriptor, udp)
                                      : llp::UringUdpLink::open(ring, local, udp);
    if (datagram.descriptor >= 0) return llp::UdpLink::adopt(datagram.descriptor, udp);
    return llp::FocusedUdpLink::open(local, udp, datagram.share_port ? 0 : datagram.connect_after);
  };
}

[[noreturn]] void refuse_resources(std::error_code code) {
  throw Error(code,
              "The system gives the device no descriptors or no thread; raise the process's limits "
              "(ulimit -n, -u, -v) or close what it has open");
}

/// What `make` returns. Where the system refuses what it needs, Error says so.
template <class Make>
auto with_resources(Make&& make) {
  try {
    return make();
  } catch (const Error&) {
    throw;
  } catch (const std::system_error& error) {
    refuse_resources(error.code());
  } catch (const boost::system::system_error& error) {
    refuse_resources(error.code());
  }
}

}  // namespace

std::shared_ptr<Device> open_device(const Address& address, const DeviceOptions& options) {
  return with_resources([&] { return std::make_shared<Device>(address, options); });
}

Device::Device(const Address& address, const DeviceOptions& options, DeviceParts parts)
    : DeviceContext(address, options,
                    parts.clock != nullptr ? *parts.clock : SteadyClock::instance()),
      io_(choose_io(options.io, parts.ring, counters())) {
  set_links(parts.datagram_links ? std::move(parts.datagram_links) : udp_links(options, io_.ring),
            io_.ring ? std::make_unique<llp::UringConnector>(io_.ring)
                     : std::make_unique<llp::TcpConnector>());
  if (io_.ring) io_.ring->on_ready([this] { engine().wake(); });
}

Device::~Device() = default;

Control& Device::control() {
  const std::lock_guard lock(mutex_);
  if (!control_) control_ = with_resources([this] { return std::make_unique<Control>(*this); });
  return *control_;
}

ConnectionControl& Device::connections() { return control(); }

std::shared_ptr<Control> control_of(const std::shared_ptr<Device>& device) {
  return {device, &device->control()};
}

DeviceAttributes Device::query() const {
  DeviceAttributes attributes;
  attributes.address = address();
  attributes.max_message = kMaxMessage;
  attributes.max_queue_depth = kMaxQueueDepth;
  attributes.max_sge = kMaxSge;
  attributes.max_inline_data = kMaxInlineData;
  attributes.queue_pairs = queue_pairs();
  attributes.memory_regions = static_cast<uint32_t>(regions().size());
  attributes.crc_backend = crc32c_backend();
  const std::string by = io_.ring ? "io_uring" : "system calls";
  attributes.datagram_backend =
      "UDP " + by +
      (options().offload ? ", with UDP_SEGMENT and UDP_GRO where the kernel has them" : "");
  const bool in_place = !io_.ring && options().zerocopy_from != 0;
  attributes.stream_backend = "TCP " + by + (in_place ? ", with MSG_ZEROCOPY" : "");
  attributes.io = io_.ring ? IoBackend::uring : IoBackend::syscall;
  attributes.io_reason = io_.reason;
  return attributes;
}

DatagramSocketAttributes Device::query_datagram_sockets() const {
  return llp::ask_udp_support(address(), udp_options(options()));
}

}  // namespace diwarp::rnic
