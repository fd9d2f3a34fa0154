// SPDX-License-Identifier: Apache-2.0
#include "hybrid/device.h"

#include <algorithm>
#include <utility>

#include "diwarp/error.h"
#include "hybrid/completion_channel.h"
#include "hybrid/completion_queue.h"
#include "hybrid/event_queue.h"
#include "hybrid/protection_domain.h"
#include "provider/own.h"

namespace diwarp::hybrid {

Device::Device(Halves<provider::Device> halves, Progress progress)
    : halves_(std::move(halves)),
      manual_(progress == Progress::manual),
      invalidations_(std::make_shared<Invalidations>()),
      software_waits_(dynamic_cast<provider::Waitable*>(halves_.software.get())),
      hardware_waits_(dynamic_cast<provider::Waitable*>(halves_.hardware.get())) {
  const auto all = invalidations_;
  halves_.software->observe_invalidations(
      [all](STag stag) { all->invalidate(Half::hardware, stag); });
  halves_.hardware->observe_invalidations(
      [all](STag stag) { all->invalidate(Half::software, stag); });
}

Device::~Device() = default;

/// As connections have it: the limits and capabilities are the hardware's.
DeviceAttributes Device::query() const {
  DeviceAttributes attributes = halves_.hardware->query();
  const DeviceAttributes software = halves_.software->query();
  attributes.queue_pairs += software.queue_pairs;
  attributes.max_groups = software.max_groups;
  attributes.crc_backend = software.crc_backend;
  attributes.datagram_backend = software.datagram_backend;
  attributes.io = software.io;
  attributes.io_name = software.io_name;
  attributes.io_reason = software.io_reason;
  attributes.capabilities = attributes.capabilities | Capability::datagrams;
  return attributes;
}

DatagramSocketAttributes Device::query_datagram_sockets() const {
  return halves_.software->query_datagram_sockets();
}

std::vector<CounterValue> Device::read_counters() const {
  return halves_.software->read_counters();
}

size_t Device::progress() { return halves_.software->progress() + halves_.hardware->progress(); }

void Device::remove() {
  halves_.hardware->remove();
  halves_.software->remove();
}

void Device::observe_invalidations(std::function<void(STag)>) {
  throw Error(make_error_code(Errc::unsupported_operation),
              "A hybrid device is no half of another one");
}

Duration Device::before_wait(Duration limit) {
  return std::min(software_waits_->before_wait(limit), hardware_waits_->before_wait(limit));
}

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
  return halves_.hardware->make_listener(port, options);
}

std::shared_ptr<provider::MeetingPoint> Device::make_meeting_point(uint16_t port,
                                                                   const ListenOptions& options) {
  return halves_.hardware->make_meeting_point(port, options);
}

std::shared_ptr<provider::CmId> Device::make_cm_id(std::shared_ptr<provider::CmChannel> channel,
                                                   uint64_t context) {
  return halves_.hardware->make_cm_id(std::move(channel), context);
}

}  // namespace diwarp::hybrid
