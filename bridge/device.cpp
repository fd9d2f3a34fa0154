// SPDX-License-Identifier: Apache-2.0
#include "bridge/device.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "bridge/cm_id.h"
#include "bridge/completion_queue.h"
#include "bridge/event_queue.h"
#include "bridge/event_thread.h"
#include "bridge/listener.h"
#include "bridge/protection_domain.h"
#include "bridge/refuse.h"
#include "provider/own.h"

namespace diwarp::bridge {
namespace {

/// No attribute tells how much a queue pair takes inline; all drivers of iWARP devices take so
/// much.
constexpr uint32_t kInlineData = 64;

Owned<ibv_context> open_context(const RdmaCore& core, const std::string& name) {
  const VerbsFunctions& verbs = core.verbs();
  int count = 0;
  ibv_device** const list = verbs.get_device_list(&count);
  if (list == nullptr) refuse_errno(errno, "The hardware devices cannot be listed");
  ibv_device** const end = list + count;
  ibv_device** const found =
      std::find_if(list, end, [&](ibv_device* device) { return name == device->name; });
  Owned<ibv_context> context(found != end ? verbs.open_device(*found) : nullptr,
                             {verbs.close_device});
  const int error = errno;
  verbs.free_device_list(list);
  if (found == end) refuse(Errc::invalid_argument, "There is no hardware device " + name);
  if (!context)
    refuse_errno(error, "The hardware device " + name +
                            " cannot be opened; this process must be "
                            "able to open its file in /dev/infiniband");
  return context;
}

/// Reads that a device has for a connection, as librdmacm reads them: 8 bits.
uint16_t depth_of(int reads) { return static_cast<uint8_t>(reads); }

Capability capabilities_of(const ibv_device_attr& limits, const DriverTraits& traits) {
  Capability all = Capability::none;
  if (limits.atomic_cap != IBV_ATOMIC_NONE) all = all | Capability::atomics;
  if (limits.max_mw > 0 && (limits.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0)
    all = all | Capability::memory_windows;
  if (limits.max_srq > 0) all = all | Capability::shared_receive_queues;
  if (traits.local_invalidate) all = all | Capability::local_invalidate;
  if (traits.chosen_bases) all = all | Capability::chosen_bases;
  if (traits.immediate_data) all = all | Capability::immediate_data;
  if (traits.told_invalidations) all = all | Capability::told_invalidations;
  if (traits.exact_errors) all = all | Capability::exact_errors;
  if (!traits.reads_need_remote_write) all = all | Capability::read_sinks;
  if (traits.read_rights) all = all | Capability::read_rights;
  return all;
}

/// Once in a process.
void warn_of_reads(const std::string& name) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  log::warn("The device " + name +
            " lets peers read all registered memory whose STag they know, whatever its rights");
}

}  // namespace

std::shared_ptr<Device> Device::open(const std::string& name, const Address& address,
                                     const DeviceOptions& options) {
  if (!options.pcap.empty())
    log::warn("The connections of " + name +
              " are not captured: their bytes pass through hardware");
  EventThread* const thread =
      options.progress == Progress::thread ? &EventThread::of_process() : nullptr;
  std::shared_ptr<Device> device(new Device(name, address, thread));
  if (thread != nullptr) thread->add(device);
  return device;
}

Device::Device(const std::string& name, const Address& address, EventThread* thread)
    : core_(RdmaCore::loaded()),
      name_(name),
      address_(address),
      thread_(thread),
      context_(open_context(core_, name)),
      async_events_(core_, context_.get()),
      cm_events_(core_) {
  if (const int error = errno_of(verbs().query_device(context(), &limits_)))
    refuse_errno(error, "The hardware device " + name + " does not tell its limits");
  traits_ = traits_of(limits_.vendor_id);
  capabilities_ = capabilities_of(limits_, traits_);
  if (!traits_.read_rights) warn_of_reads(name);
}

Device::~Device() {
  if (thread_ != nullptr) thread_->remove(*this);
}

void Device::refuse_unsupported(const std::string& what) const {
  refuse(Errc::unsupported_operation, "The device " + name_ + " cannot do this: " + what);
}

void Device::require(Capability capability, const char* what) const {
  if (!has(capabilities(), capability)) refuse_unsupported(what);
}

DeviceAttributes Device::query() const {
  DeviceAttributes attributes;
  attributes.address = address_;
  attributes.max_message = std::min<uint64_t>(limits_.max_mr_size, kMaxMessage);
  attributes.max_queue_depth = static_cast<uint32_t>(limits_.max_qp_wr);
  attributes.max_sge = static_cast<uint32_t>(limits_.max_sge);
  attributes.max_inline_data = kInlineData;
  attributes.max_queue_pairs = static_cast<uint32_t>(limits_.max_qp);
  attributes.max_completion_queues = static_cast<uint32_t>(limits_.max_cq);
  attributes.max_completion_entries =
      std::min(static_cast<uint32_t>(limits_.max_cqe), CompletionQueue::kMostEntries);
  attributes.max_memory_regions = static_cast<uint32_t>(limits_.max_mr);
  if (has(capabilities_, Capability::memory_windows))
    attributes.max_windows = static_cast<uint32_t>(limits_.max_mw);
  attributes.max_shared_receive_queues = static_cast<uint32_t>(limits_.max_srq);
  attributes.max_shared_receive_depth = static_cast<uint32_t>(limits_.max_srq_wr);
  attributes.max_shared_receive_sge = static_cast<uint32_t>(limits_.max_srq_sge);
  attributes.max_ord = depth_of(limits_.max_qp_init_rd_atom);
  attributes.max_ird = depth_of(limits_.max_qp_rd_atom);
  attributes.queue_pairs = queue_pairs_;
  attributes.memory_regions = memory_regions_;
  attributes.crc_backend = name_;
  attributes.stream_backend = name_;
  attributes.io = IoBackend::syscall;
  attributes.io_name = name_;
  attributes.io_reason = "a hardware device moves its bytes itself";
  attributes.capabilities = capabilities_;
  return attributes;
}

DatagramSocketAttributes Device::query_datagram_sockets() const {
  refuse_unsupported("queue pairs over datagrams");
}

void Device::add_removable(const std::weak_ptr<ConnectionObserver>& id) {
  std::erase_if(removables_, [](const auto& known) { return known.expired(); });
  removables_.push_back(id);
}

void Device::remove() {
  std::vector<std::shared_ptr<ConnectionObserver>> all;  // outlives the lock: they may end here
  const ControlLock lock(*this);
  for (const auto& known : removables_)
    if (auto id = known.lock()) all.push_back(std::move(id));
  for (const auto& id : all) id->on_connection({.type = CmEventType::device_removal});
}

// --- Events.

Duration Device::before_wait(Duration limit) {
  if (!manual()) return limit;
  step();
  return std::min<Duration>(limit, std::chrono::milliseconds(1));
}

ControlLock::ControlLock(Device& device) : device_(device), lock_(device.mutex_) {}

ControlLock::~ControlLock() {
  std::vector<std::shared_ptr<void>> dropped;  // ends without the mutex
  dropped.swap(device_.dropped_);
  device_.changed_.notify_all();
  lock_.unlock();
}

void Device::wait_once(ControlLock& held, Duration limit) {
  std::unique_lock<std::mutex>& lock = held.lock_;
  if (!manual()) {
    changed_.wait_for(lock, limit);
    return;
  }
  lock.unlock();
  if (step() == 0) {
    std::array<pollfd, 2> both{};
    for (size_t i = 0; i < both.size(); ++i) both[i] = {descriptors()[i], POLLIN, 0};
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(
        std::min({limit, time_to_deadline(), Duration(std::chrono::milliseconds(10))}));
    ::poll(both.data(), both.size(), static_cast<int>(wait.count()));
  }
  lock.lock();
}

size_t Device::step() {
  const std::lock_guard one_at_a_time(step_mutex_);  // events are handled in their order
  size_t done = 0;
  try {
    while (done < kMostEvents && step_once()) ++done;
    end_deadlines();
  } catch (const std::exception& error) {  // for want of memory
    log::error("An event of " + name_ + " was lost: " + error.what());
  }
  return done;
}

/// Handles an event. False where there is none.
bool Device::step_once() {
  if (async_events_.step()) return true;
  CmEvents::Delivery delivery;  // ends without the mutex
  if (!cm_events_.next(delivery)) return false;
  if (!delivery.handler) return true;
  const ControlLock lock(*this);
  delivery.handler->on_cm_event(std::move(delivery.notice));
  return true;
}

void Device::add_timed(const std::weak_ptr<Timed>& timed) {
  const auto same = [&timed](const std::weak_ptr<Timed>& known) {
    return !known.owner_before(timed) && !timed.owner_before(known);
  };
  if (std::ranges::none_of(timed_, same)) timed_.push_back(timed);
  if (thread_ != nullptr) thread_->wake();
}

void Device::end_deadlines() {
  std::vector<std::shared_ptr<Timed>> all;  // outlives the lock: they may end here
  const ControlLock lock(*this);
  for (const auto& known : timed_)
    if (auto timed = known.lock()) all.push_back(std::move(timed));
  const Time now = SteadyClock::instance().now();
  for (const auto& timed : all)
    if (timed->deadline() <= now) timed->on_deadline();
  std::erase_if(timed_, [](const auto& known) {
    const auto timed = known.lock();
    return !timed || timed->deadline() == Time::max();
  });
}

Duration Device::time_to_deadline() {
  std::vector<std::shared_ptr<Timed>> all;
  const ControlLock lock(*this);
  Time first = Time::max();
  for (const auto& known : timed_) {
    if (auto timed = known.lock()) {
      first = std::min(first, timed->deadline());
      all.push_back(std::move(timed));
    }
  }
  if (first == Time::max()) return kLongestWait;
  return std::clamp(first - SteadyClock::instance().now(), Duration::zero(), kLongestWait);
}

// --- Objects.

std::shared_ptr<provider::ProtectionDomain> Device::make_protection_domain() {
  return std::make_shared<ProtectionDomain>(shared_from_this());
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
  return Listener::open(shared_from_this(), address_.with_port(port), options);
}

std::shared_ptr<provider::MeetingPoint> Device::make_meeting_point(uint16_t, const ListenOptions&) {
  refuse_unsupported("queue pairs whose peers are named");
}

std::shared_ptr<provider::CmId> Device::make_cm_id(std::shared_ptr<provider::CmChannel> channel,
                                                   uint64_t context) {
  return CmId::make(shared_from_this(), std::move(channel), context);
}

}  // namespace diwarp::bridge
