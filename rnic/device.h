// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "diwarp/attributes.h"
#include "diwarp/device_options.h"
#include "diwarp/types.h"
#include "llp/backend.h"
#include "provider/device.h"
#include "rnic/context/device_context.h"

namespace diwarp::rnic {

class Control;

/// The parts of a new device besides its public options.
struct DeviceParts {
  const Clock* clock = nullptr;              ///< null: the steady clock
  DatagramLinkFactory datagram_links;        ///< empty: the backend's
  const llp::BackendRow* backend = nullptr;  ///< null: of the table, as the options say
};

/// The software RNIC: chooses how bytes are moved, and starts the control path.
class Device final : public DeviceContext,
                     public provider::Device,
                     public std::enable_shared_from_this<Device> {
 public:
  Device(const Address& address, const DeviceOptions& options, DeviceParts parts = {});
  ~Device() override;

  /// The control path: connects, accepts, negotiates. Started at first use.
  Control& control();
  ConnectionControl& connections() override;

  Address address() const override { return DeviceContext::address(); }
  DeviceAttributes query() const override;
  /// Asks a socket of its own. Throws Error where none can be opened.
  DatagramSocketAttributes query_datagram_sockets() const override;
  std::vector<CounterValue> read_counters() const override;
  size_t progress() override { return engine().poll_step(); }
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

 private:
  /// The control path, which keeps its device while it is in use.
  std::shared_ptr<Control> shared_control() { return {shared_from_this(), &control()}; }
  std::unique_ptr<llp::Backend> open_backend(const llp::BackendRow* wanted);

  /// What the host's backlog lost since the device was opened, as far as it is counted. Any thread.
  class BacklogCount {
   public:
    BacklogCount(Counters& counters, uint64_t seen) : counters_(counters), seen_(seen) {}
    void update();

   private:
    Counters& counters_;
    std::mutex mutex_;  // guards seen_
    uint64_t seen_;
  };

  std::unique_ptr<BacklogCount> backlog_;
  llp::BackendRow row_ = {};  // of the backend in use
  std::string io_reason_;     // why so: a message without its end
  std::mutex mutex_;          // guards control_
  std::unique_ptr<Control> control_;
};

}  // namespace diwarp::rnic
