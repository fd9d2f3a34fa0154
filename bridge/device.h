// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/blocking_wait.h"
#include "base/clock.h"
#include "bridge/async_events.h"
#include "bridge/cm_events.h"
#include "bridge/driver_traits.h"
#include "bridge/owned.h"
#include "bridge/rdma_core.h"
#include "diwarp/attributes.h"
#include "diwarp/connection_event.h"
#include "diwarp/device_options.h"
#include "provider/device.h"
#include "provider/waitable.h"

namespace diwarp::bridge {

/// Tunable: the events that a step handles at most, so that deadlines and other devices have their
/// turn.
inline constexpr size_t kMostEvents = 64;

/// Has a moment at which something must happen.
class Timed {
 public:
  virtual ~Timed() = default;
  /// With the device's mutex held. Time::max(): never.
  virtual Time deadline() const = 0;
  /// The same: the moment has come.
  virtual void on_deadline() = 0;
};

/// Is told of a connection, or of peers that ask for one, with the device's mutex held.
class ConnectionObserver {
 public:
  virtual ~ConnectionObserver() = default;
  virtual void on_connection(CmEventInfo info) = 0;
  /// A peer asks at an id that listens.
  virtual void on_request(CmNotice notice) = 0;
};

class Device;
class EventThread;

/// Holds a device's mutex, which guards connections, listeners, ids, and the states of queue pairs.
/// Its end frees the mutex, wakes those who wait for a change, and then ends what was dropped
/// meanwhile (Device::drop_later()).
class ControlLock {
 public:
  explicit ControlLock(Device& device);
  ~ControlLock();
  ControlLock(const ControlLock&) = delete;
  ControlLock& operator=(const ControlLock&) = delete;

 private:
  friend class Device;
  Device& device_;
  std::unique_lock<std::mutex> lock_;
};

/// An iWARP device of rdma-core's, on one of its addresses.
class Device final : public provider::Device,
                     public provider::Waitable,
                     public std::enable_shared_from_this<Device> {
 public:
  /// `name` is libibverbs' name of it. Throws Error.
  static std::shared_ptr<Device> open(const std::string& name, const Address& address,
                                      const DeviceOptions& options);
  ~Device() override;

  Address address() const override { return address_; }
  DeviceAttributes query() const override;
  DatagramSocketAttributes query_datagram_sockets() const override;
  std::vector<CounterValue> read_counters() const override { return {}; }
  size_t progress() override { return step(); }
  void remove() override;
  void observe_invalidations(std::function<void(STag)> observer) override {
    invalidations_ = std::move(observer);
  }

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

  // --- For the bridge.

  const RdmaCore& core() const { return core_; }
  const VerbsFunctions& verbs() const { return core_.verbs(); }
  const CmFunctions& cm() const { return core_.cm(); }
  ibv_context* context() const { return context_.get(); }
  const std::string& name() const { return name_; }
  const ibv_device_attr& limits() const { return limits_; }
  const DriverTraits& traits() const { return traits_; }
  Capability capabilities() const { return capabilities_; }
  /// Throws Error(unsupported_operation) unless the device has the capability; `what` begins the
  /// sentence.
  void require(Capability capability, const char* what) const;
  [[noreturn]] void refuse_unsupported(const std::string& what) const;

  AsyncEvents& async_events() { return async_events_; }
  CmEvents& cm_events() { return cm_events_; }
  CmEndpoint make_endpoint() { return CmEndpoint::create(cm_events_, core_); }

  /// Drops the object once the mutex is free, which its end takes. With the mutex held. Takes no
  /// memory after a call of reserve_drops(), which must come before there is such an object: that
  /// must not end with the mutex held.
  void drop_later(std::shared_ptr<void> object) { dropped_.push_back(std::move(object)); }
  void reserve_drops(size_t count) { dropped_.reserve(dropped_.size() + count); }
  /// Is told by remove(). With the mutex held.
  void add_removable(const std::weak_ptr<ConnectionObserver>& id);
  /// Waits until `predicate` or `deadline`. Returns predicate().
  template <class Predicate>
  bool wait(ControlLock& lock, Time deadline, Predicate predicate) {
    bool served = !manual();  // else once at least
    for (;;) {
      if (predicate()) return true;
      const Duration left = deadline - SteadyClock::instance().now();
      if (left <= Duration::zero() && served) return false;
      wait_once(lock, std::clamp(left, Duration::zero(), kLongestWait));
      served = true;
    }
  }
  /// Serves the connection manager and the asynchronous events. Any thread.
  size_t step();
  /// The application serves the device, by its calls: Progress::manual.
  bool manual() const { return thread_ == nullptr; }
  std::array<int, 2> descriptors() const {
    return {cm_events_.descriptor(), async_events_.descriptor()};
  }
  /// Its deadline counts from now on.
  void add_timed(const std::weak_ptr<Timed>& timed);
  Duration time_to_deadline();

  /// A request or a peer has invalidated a region.
  void tell_invalidated(STag stag) const {
    if (invalidations_) invalidations_(stag);
  }

  std::atomic<uint32_t>& queue_pairs() { return queue_pairs_; }
  std::atomic<uint32_t>& memory_regions() { return memory_regions_; }

 private:
  friend class ControlLock;
  Device(const std::string& name, const Address& address, EventThread* thread);
  void wait_once(ControlLock& lock, Duration limit);
  bool step_once();
  void end_deadlines();

  const RdmaCore& core_;
  const std::string name_;
  const Address address_;
  EventThread* const thread_;  // null: Progress::manual
  Owned<ibv_context> context_;
  ibv_device_attr limits_{};
  DriverTraits traits_;
  Capability capabilities_ = Capability::none;
  AsyncEvents async_events_;
  CmEvents cm_events_;
  std::function<void(STag)> invalidations_;  // may be empty

  std::mutex step_mutex_;  // of a step
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::weak_ptr<Timed>> timed_;                    // guarded by mutex_
  std::vector<std::weak_ptr<ConnectionObserver>> removables_;  // the same
  std::vector<std::shared_ptr<void>> dropped_;                 // the same

  std::atomic<uint32_t> queue_pairs_{0};
  std::atomic<uint32_t> memory_regions_{0};
};

}  // namespace diwarp::bridge
