// SPDX-License-Identifier: Apache-2.0
#include "rnic/device.h"

#include <boost/system/system_error.hpp>
#include <utility>

#include "base/crc32c.h"
#include "base/log.h"
#include "base/offsets.h"
#include "base/random.h"
#include "diwarp/error.h"
#include "llp/udp/focused_udp.h"
#include "llp/udp/udp_support.h"
#include "llp/uring/uring_stream.h"
#include "llp/uring/uring_udp.h"
#include "rnic/cm/control.h"
#include "rnic/context/event_queue.h"
#include "rnic/open_device.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

namespace {

constexpr uint32_t kFirstNumber = 0x10000;   // above every UDP port
constexpr uint32_t kLastNumber = 0xffffff;   // 24 bits

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

DatagramLinkFactory udp_links(const DeviceOptions& options,
                              std::shared_ptr<llp::UringQueue> ring) {
  return [of_device = udp_options(options), ring = std::move(ring)](
             const Address& local,
             const DatagramOptions& datagram) -> std::unique_ptr<llp::DatagramLink> {
    llp::UdpOptions udp = of_device;
    udp.fragment = datagram.jumbo;
    udp.multicast_hops = datagram.group.hops;
    udp.multicast_loopback = datagram.group.loopback;
    udp.multicast_interface = datagram.group.interface;
    if (ring != nullptr)
      return datagram.descriptor >= 0 ? llp::UringUdpLink::adopt(ring, datagram.descriptor, udp)
                                      : llp::UringUdpLink::open(ring, local, udp);
    if (datagram.descriptor >= 0) return llp::UdpLink::adopt(datagram.descriptor, udp);
    return llp::FocusedUdpLink::open(local, udp, datagram.connect_after);
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
    : address_(address.with_port(0)),
      options_(options),
      io_(choose_io(options.io, parts.ring, counters_)),
      datagram_links_(parts.datagram_links ? std::move(parts.datagram_links)
                                           : udp_links(options, io_.ring)),
      engine_(options_, parts.clock != nullptr ? *parts.clock : SteadyClock::instance(), counters_),
      regions_([this] { engine_.exclusively([] {}); }, system_random_u32),
      next_number_(kFirstNumber + system_random_u32() % (kLastNumber - kFirstNumber)) {
  if (io_.ring) io_.ring->on_ready([this] { engine_.wake(); });
}

Device::~Device() = default;

Control& Device::control() {
  const std::lock_guard lock(mutex_);
  if (!control_) control_ = with_resources([this] { return std::make_unique<Control>(*this); });
  return *control_;
}

std::unique_ptr<llp::Stream> Device::served(std::unique_ptr<llp::Stream> stream) {
  auto* tcp = dynamic_cast<llp::TcpStream*>(stream.get());
  if (io_.ring == nullptr || tcp == nullptr) return stream;
  return llp::UringStream::over(io_.ring, std::move(*tcp));
}

uint32_t Device::take_number() {
  const std::lock_guard lock(mutex_);
  if (numbers_.size() > kLastNumber - kFirstNumber)
    throw Error(make_error_code(Errc::no_resources),
                "All queue pair numbers of the device are in use; destroy queue pairs first");
  do {
    next_number_ = next_number_ >= kLastNumber ? kFirstNumber : next_number_ + 1;
  } while (!numbers_.insert(next_number_).second);
  return next_number_;
}

void Device::return_number(uint32_t number) {
  const std::lock_guard lock(mutex_);
  numbers_.erase(number);
}

void Device::raise(const AsyncEvent& event) {
  const std::lock_guard lock(events_mutex_);
  for (EventQueue* queue : event_queues_) queue->raise(event);
}

void Device::add_event_queue(EventQueue& queue) {
  const std::lock_guard lock(events_mutex_);
  event_queues_.push_back(&queue);
}

void Device::remove_event_queue(EventQueue& queue) {
  const std::lock_guard lock(events_mutex_);
  std::erase(event_queues_, &queue);
}

DeviceAttributes Device::query() const {
  DeviceAttributes attributes;
  attributes.address = address_;
  attributes.max_message = kMaxMessage;
  attributes.max_queue_depth = kMaxQueueDepth;
  attributes.max_sge = kMaxSge;
  attributes.max_inline_data = kMaxInlineData;
  attributes.queue_pairs = queue_pairs_.load();
  attributes.memory_regions = static_cast<uint32_t>(regions_.size());
  attributes.crc_backend = crc32c_backend();
  const std::string by = io_.ring ? "io_uring" : "system calls";
  attributes.datagram_backend =
      "UDP " + by +
      (options_.offload ? ", with UDP_SEGMENT and UDP_GRO where the kernel has them" : "");
  const bool in_place = !io_.ring && options_.zerocopy_from != 0;
  attributes.stream_backend = "TCP " + by + (in_place ? ", with MSG_ZEROCOPY" : "");
  attributes.io = io_.ring ? IoBackend::uring : IoBackend::syscall;
  attributes.io_reason = io_.reason;
  return attributes;
}

DatagramSocketAttributes Device::query_datagram_sockets() const {
  return llp::ask_udp_support(address_, udp_options(options_));
}

SteeringTag::SteeringTag(std::shared_ptr<ProtectionDomain> domain, ddp::Region region, bool chosen)
    : domain_(std::move(domain)), stag_(region.stag) {
  region.protection_domain = domain_->number();
  ddp::STagTable& regions = domain_->device()->regions();
  if (!chosen)
    stag_ = regions.insert(region);
  else if (!regions.insert_chosen(region))
    throw Error(make_error_code(Errc::invalid_argument),
                "The chosen STag cannot be had: its upper 24 bits must not be zero, nor those of "
                "an STag in use on this device; choose another");
}

SteeringTag::~SteeringTag() { domain_->device()->regions().erase(stag_); }

SteeringTagAttributes SteeringTag::query() const {
  Device& device = *domain_->device();
  return device.engine().exclusively([&] {
    const ddp::Region& entry = *device.regions().find_any_key(stag_);
    return SteeringTagAttributes{.stag = entry.stag,
                                 .valid = entry.valid,
                                 .base = entry.base,
                                 .length = entry.valid ? entry.length : 0,
                                 .access = entry.valid ? entry.access : Access::none};
  });
}

namespace {

ddp::Region checked_region(std::span<std::byte> memory, Access access,
                           std::optional<uint64_t> base, std::optional<STag> chosen) {
  if (memory.data() == nullptr && !memory.empty())
    throw Error(make_error_code(Errc::invalid_argument),
                "A memory region needs memory: the address is null and the length is not 0");
  const bool peers_write =
      (access & (Access::remote_write | Access::remote_atomic)) != Access::none;
  if (peers_write && !grants(access, Access::local_write))
    throw Error(make_error_code(Errc::invalid_argument),
                "A region that peers may write must be writable locally too: add local_write");
  ddp::Region region;
  region.stag = chosen.value_or(0);
  region.access = access;
  region.memory = memory.data();
  region.length = memory.size();
  region.base = base.value_or(reinterpret_cast<uintptr_t>(memory.data()));
  if (wraps(region.base, region.length))
    throw Error(make_error_code(Errc::invalid_argument),
                "The region's tagged offsets would pass 2^64; choose a lower base");
  return region;
}

}  // namespace

MemoryRegion::MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory,
                           Access access, std::optional<uint64_t> base, std::optional<STag> chosen)
    : region_(checked_region(memory, access, base, chosen)),
      tag_(std::move(domain), region_, chosen.has_value()) {
  region_.stag = tag_.stag();
}

}  // namespace diwarp::rnic
