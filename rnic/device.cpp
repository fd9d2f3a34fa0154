// SPDX-License-Identifier: Apache-2.0
#include "rnic/device.h"

#include <algorithm>
#include <boost/system/system_error.hpp>
#include <span>
#include <utility>

#include "base/crc32c.h"
#include "base/log.h"
#include "diwarp/error.h"
#include "llp/host_backlog.h"
#include "mpa/startup.h"
#include "provider/own.h"
#include "rnic/cm/cm_id.h"
#include "rnic/cm/control.h"
#include "rnic/cm/listener.h"
#include "rnic/cm/meeting_point.h"
#include "rnic/context/event_queue.h"
#include "rnic/domain_objects.h"
#include "rnic/open_device.h"
#include "rnic/queues/completion_queue.h"
#include "rnic/queues/work_queue.h"

namespace diwarp::rnic {

namespace {

const llp::BackendRow& row_of(IoBackend wanted) {
  const std::span<const llp::BackendRow> table = llp::backend_table();
  const auto found = std::ranges::find(table, wanted, &llp::BackendRow::io);
  return found == table.end() ? table.front() : *found;  // no row is the automatic one's
}

/// A device's address must be one of this host's.
void check_local(const llp::BackendRow& backend, const Address& address) {
  const int error = backend.check_local(address);
  if (error == 0) return;
  throw Error(std::error_code(error, std::system_category()),
              "No device can be opened on " + address.host() +
                  ": give an address of this host (see `ip address`), or 0.0.0.0 or :: for all");
}

[[noreturn]] void refuse_resources(std::error_code code) {
  throw Error(code,
              "The system gives the device no descriptors or no thread; raise the process's limits "
              "(ulimit -n, -u, -v) or close what it has open");
}

/// Returns the result of `make`. Where the system refuses its needs, Error says so.
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
  check_local(row_of(options.io), address);
  return with_resources([&] { return std::make_shared<Device>(address, options); });
}

std::string why_unavailable(IoBackend io) {
  const llp::BackendRow& row = row_of(io);
  const bool known = io == IoBackend::automatic || row.io == io;
  return known ? row.why_unavailable() : "this library was built without it";
}

Device::Device(const Address& address, const DeviceOptions& options, DeviceParts parts)
    : DeviceContext(address, options,
                    parts.clock != nullptr ? *parts.clock : SteadyClock::instance()) {
  backlog_ = std::make_unique<BacklogCount>(counters(), llp::backlog_drops_of_host());
  set_links(std::move(parts.datagram_links), open_backend(parts.backend));
  backend().on_ready([this] { engine().wake(); });
  log::tell(LogLevel::info, {.device = name()}, [this] {
    return "the device is open; bytes are moved by " + std::string(row_.name) + " (" + io_reason_ +
           ")";
  });
}

/// One line tells of a backend that was wanted and cannot be had.
std::unique_ptr<llp::Backend> Device::open_backend(const llp::BackendRow* wanted) {
  const bool asked = options().io != IoBackend::automatic;
  row_ = wanted != nullptr ? *wanted : row_of(options().io);
  io_reason_ = asked ? "asked for" : row_.why_automatic;
  std::string why_not;
  if (auto opened = row_.open({options(), counters(), address(), engine().clock()}, why_not))
    return opened;
  io_reason_ = std::string(row_.name) + " was " + io_reason_ + ", but " + why_not;
  row_ = row_of(IoBackend::syscall);
  log::warn(io_reason_ + "; bytes are moved by " + std::string(row_.name));
  return row_.open({options(), counters(), address(), engine().clock()}, why_not);
}

Device::~Device() = default;

Control& Device::control() {
  const std::lock_guard lock(mutex_);
  if (!control_) control_ = with_resources([this] { return std::make_unique<Control>(*this); });
  return *control_;
}

ConnectionControl& Device::connections() { return control(); }

void Device::remove() { control().announce_removal(); }

void Device::observe_invalidations(std::function<void(STag)> observer) {
  engine().exclusively([&] { regions().observe_invalidations(std::move(observer)); });
}

/// What the host has lost since the last time. It takes a file to be read, so it is done when
/// somebody asks.
void Device::BacklogCount::update() {
  const std::lock_guard lock(mutex_);
  const uint64_t now = llp::backlog_drops_of_host();
  if (now > seen_) counters_.add_shared(Counter::backlog_drops, now - seen_);
  seen_ = now;
}

std::vector<CounterValue> Device::read_counters() const {
  backlog_->update();
  std::vector<CounterValue> values;
  values.reserve(Counters::count());
  for (size_t index = 0; index < Counters::count(); ++index) {
    const auto counter = static_cast<Counter>(index);
    values.push_back(
        {Counters::name(counter), Counters::description(counter), counters().get(counter)});
  }
  return values;
}

DeviceAttributes Device::query() const {
  DeviceAttributes attributes;
  attributes.address = address();
  attributes.max_message = kMaxMessage;
  attributes.max_queue_depth = kMaxQueueDepth;
  attributes.max_sge = kMaxSge;
  attributes.max_inline_data = kMaxInlineData;
  attributes.max_queue_pairs = kMaxRcNumber - kLeastRcNumber + 1;
  attributes.max_completion_queues = kUnlimited;
  attributes.max_completion_entries = kMaxEntries;
  attributes.max_memory_regions = ddp::STagTable::kMaxEntries;
  attributes.max_windows = ddp::STagTable::kMaxEntries;
  attributes.max_shared_receive_queues = kUnlimited;
  attributes.max_shared_receive_depth = kMaxQueueDepth;
  attributes.max_shared_receive_sge = kMaxSge;
  attributes.max_groups = kUnlimited;
  attributes.max_ord = mpa::kMaxDepth;
  attributes.max_ird = mpa::kMaxDepth;
  attributes.queue_pairs = queue_pairs();
  attributes.memory_regions = static_cast<uint32_t>(regions().size());
  attributes.crc_backend = crc32c_backend();
  const llp::BackendDescription description = backend().describe();
  attributes.datagram_backend = description.datagrams;
  attributes.stream_backend = description.streams;
  attributes.io = row_.io;
  attributes.io_name = row_.name;
  attributes.io_reason = io_reason_;
  attributes.capabilities = kAllCapabilities;
  return attributes;
}

DatagramSocketAttributes Device::query_datagram_sockets() const {
  return backend().query_datagrams(address());
}

// --- Objects.

std::shared_ptr<provider::ProtectionDomain> Device::make_protection_domain() {
  return std::make_shared<DomainObjects>(std::make_shared<ProtectionDomain>(shared_from_this()));
}

std::shared_ptr<provider::CompletionChannel> Device::make_completion_channel() {
  return std::make_shared<CompletionChannel>(shared_from_this());
}

std::shared_ptr<provider::CompletionQueue> Device::make_completion_queue(
    uint32_t entries, std::shared_ptr<provider::CompletionChannel> channel, uint64_t context) {
  return std::make_shared<CompletionQueue>(
      shared_from_this(), entries,
      provider::own_pointer<CompletionChannel>(channel, "completion channel"), context);
}

std::shared_ptr<provider::EventQueue> Device::make_event_queue() {
  return std::make_shared<EventQueue>(shared_from_this());
}

std::shared_ptr<provider::Listener> Device::make_listener(uint16_t port,
                                                          const ListenOptions& options) {
  return std::make_shared<Listener>(shared_control(), port, options);
}

std::shared_ptr<provider::MeetingPoint> Device::make_meeting_point(uint16_t port,
                                                                   const ListenOptions& options) {
  return std::make_shared<MeetingPoint>(shared_control(), port, options);
}

std::shared_ptr<provider::CmId> Device::make_cm_id(std::shared_ptr<provider::CmChannel> channel,
                                                   uint64_t context) {
  return std::make_shared<CmId>(shared_control(), std::move(channel), context);
}

}  // namespace diwarp::rnic
