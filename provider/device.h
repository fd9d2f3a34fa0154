// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "diwarp/address.h"
#include "diwarp/attributes.h"
#include "diwarp/connect_options.h"

/// The contract between the verbs and those that provide them: what the public handles hold, and
/// the calls that these make. Functions are as the public ones of the same name, unless they say
/// otherwise.
namespace diwarp::provider {

class CmChannel;
class CmId;
class CompletionChannel;
class CompletionQueue;
class EventQueue;
class Listener;
class MeetingPoint;
class ProtectionDomain;

/// Makes the objects of a device. They keep it.
class Device {
 public:
  virtual ~Device() = default;

  virtual Address address() const = 0;
  virtual DeviceAttributes query() const = 0;
  virtual DatagramSocketAttributes query_datagram_sockets() const = 0;
  virtual std::vector<CounterValue> read_counters() const = 0;
  virtual size_t progress() = 0;
  virtual void remove() = 0;
  /// `observer` is called for each region that a work request or a peer invalidates, before the
  /// completion that tells of it can be polled: from any thread, with locks of the device held. It
  /// may invalidate regions of other devices. Set once, before the device is used.
  virtual void observe_invalidations(std::function<void(STag)> observer) = 0;

  virtual std::shared_ptr<ProtectionDomain> make_protection_domain() = 0;
  virtual std::shared_ptr<CompletionChannel> make_completion_channel() = 0;
  /// `channel` may be null.
  virtual std::shared_ptr<CompletionQueue> make_completion_queue(
      uint32_t entries, std::shared_ptr<CompletionChannel> channel, uint64_t context) = 0;
  virtual std::shared_ptr<EventQueue> make_event_queue() = 0;
  virtual std::shared_ptr<Listener> make_listener(uint16_t port, const ListenOptions& options) = 0;
  virtual std::shared_ptr<MeetingPoint> make_meeting_point(uint16_t port,
                                                           const ListenOptions& options) = 0;
  virtual std::shared_ptr<CmId> make_cm_id(std::shared_ptr<CmChannel> channel,
                                           uint64_t context) = 0;
};

}  // namespace diwarp::provider
