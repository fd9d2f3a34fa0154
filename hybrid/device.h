// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "diwarp/device_options.h"
#include "hybrid/halves.h"
#include "hybrid/invalidations.h"
#include "provider/device.h"
#include "provider/waitable.h"

namespace diwarp::hybrid {

/// Two devices on one address as one: reliable connections are the hardware's, queue pairs over
/// datagrams the software's. Regions have one STag for both; completion queues, channels and event
/// queues bring what either has.
class Device final : public provider::Device,
                     public provider::Waitable,
                     public std::enable_shared_from_this<Device> {
 public:
  Device(Halves<provider::Device> halves, Progress progress);
  ~Device() override;

  Address address() const override { return halves_.hardware->address(); }
  DeviceAttributes query() const override;
  DatagramSocketAttributes query_datagram_sockets() const override;
  std::vector<CounterValue> read_counters() const override;
  size_t progress() override;
  void remove() override;
  void observe_invalidations(std::function<void(STag)> observer) override;

  std::shared_ptr<provider::ProtectionDomain> make_protection_domain() override;
  std::shared_ptr<provider::CompletionChannel> make_completion_channel() override;
  std::shared_ptr<provider::CompletionQueue> make_completion_queue(
      uint32_t entries, std::shared_ptr<provider::CompletionChannel> channel,
      uint64_t context) override;
  std::shared_ptr<provider::EventQueue> make_event_queue() override;
  std::shared_ptr<provider::Listener> make_listener(uint16_t port,
                                                    const ListenOptions& options) override;
  std::shared_ptr<provider::MeetingPoint> make_meeting_point(uint16_t port,
                                                             const ListenOptions& options) override;
  std::shared_ptr<provider::CmId> make_cm_id(std::shared_ptr<provider::CmChannel> channel,
                                             uint64_t context) override;

  Duration before_wait(Duration limit) override;

  const Halves<provider::Device>& halves() const { return halves_; }
  Invalidations& invalidations() { return *invalidations_; }
  /// The application serves the device, by its calls: Progress::manual.
  bool manual() const { return manual_; }

 private:
  const Halves<provider::Device> halves_;
  const bool manual_;
  // The halves' objects may outlive this, and tell of invalidations then.
  const std::shared_ptr<Invalidations> invalidations_;
  provider::Waitable* const software_waits_;  // the halves again
  provider::Waitable* const hardware_waits_;
};

}  // namespace diwarp::hybrid
