// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/counters.h"
#include "ddp/stag_table.h"
#include "diwarp/attributes.h"
#include "diwarp/types.h"
#include "llp/datagram.h"
#include "llp/stream.h"
#include "llp/uring/uring.h"
#include "rnic/engine/engine.h"

namespace diwarp::rnic {

class Control;
class EventQueue;

/// Opens the link under a queue pair over datagrams: at `local`, or on the options' descriptor, and
/// as they want it (jumbo, group). Replaced in tests.
using DatagramLinkFactory = std::function<std::unique_ptr<llp::DatagramLink>(
    const Address& local, const DatagramOptions& options)>;

/// How a device moves bytes: through the ring, or where that is null by system calls.
struct Io {
  std::shared_ptr<llp::UringQueue> ring;
  std::string reason;  ///< why so: a sentence without its end
};

/// What IoBackend::automatic stands for. Alone in its file: a test program may have its own.
IoBackend automatic_io();

/// What a device is made from besides its public options.
struct DeviceParts {
  const Clock* clock = nullptr;        ///< null: the steady clock
  DatagramLinkFactory datagram_links;  ///< empty: UDP
  llp::UringOptions ring;              ///< of the ring, where there is one; counts for the device
};

/// The software RNIC: engine, STag table, counters, and the numbers it gives out.
class Device {
 public:
  Device(const Address& address, const DeviceOptions& options, DeviceParts parts = {});
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Engine& engine() { return engine_; }
  ddp::STagTable& regions() { return regions_; }
  /// The control path: connects, accepts, negotiates. Started at first use.
  Control& control();

  const Address& address() const { return address_; }
  const DeviceOptions& options() const { return options_; }
  const Counters& counters() const { return counters_; }
  Counters& counters() { return counters_; }

  /// The link of a queue pair with these options.
  std::unique_ptr<llp::DatagramLink> open_datagram_link(const DatagramOptions& options) {
    return datagram_links_(address_.with_port(options.port), options);
  }

  /// The stream of a queue pair, which the ring reads where the device has one.
  std::unique_ptr<llp::Stream> served(std::unique_ptr<llp::Stream> stream);

  /// A queue pair number of 24 bits for RC: outside the range of UDP ports, so that it never equals
  /// a UD queue pair's.
  uint32_t take_number();
  void return_number(uint32_t number);

  uint32_t next_domain() { return next_domain_.fetch_add(1); }
  DeviceAttributes query() const;
  /// Asks a socket of its own. Throws Error where none can be opened.
  DatagramSocketAttributes query_datagram_sockets() const;

  /// Tells every event queue of the device. Any thread, with the baton or without.
  void raise(const AsyncEvent& event);
  void add_event_queue(EventQueue& queue);
  void remove_event_queue(EventQueue& queue);

  void count_queue_pair(int change) { queue_pairs_.fetch_add(static_cast<uint32_t>(change)); }

 private:
  const Address address_;
  const DeviceOptions options_;
  Counters counters_;
  const Io io_;
  DatagramLinkFactory datagram_links_;
  Engine engine_;
  ddp::STagTable regions_;
  std::atomic<uint32_t> next_domain_{1};
  std::atomic<uint32_t> queue_pairs_{0};

  std::mutex mutex_;
  std::set<uint32_t> numbers_;  // in use by RC queue pairs
  uint32_t next_number_;
  std::unique_ptr<Control> control_;

  std::mutex events_mutex_;  // guards event_queues_
  std::vector<EventQueue*> event_queues_;
};

/// What keeps queue pairs and regions together.
class ProtectionDomain {
 public:
  explicit ProtectionDomain(std::shared_ptr<Device> device)
      : device_(std::move(device)), number_(device_->next_domain()) {}
  const std::shared_ptr<Device>& device() const { return device_; }
  uint32_t number() const { return number_; }

 private:
  std::shared_ptr<Device> device_;
  uint32_t number_;
};

/// An entry of the device's STag table; lives there while this object does.
class SteeringTag {
 public:
  /// Under a fresh random STag, or under `region.stag` if that was chosen; throws Error then if it
  /// cannot be had.
  SteeringTag(std::shared_ptr<ProtectionDomain> domain, ddp::Region region, bool chosen = false);
  ~SteeringTag();
  SteeringTag(const SteeringTag&) = delete;
  SteeringTag& operator=(const SteeringTag&) = delete;

  STag stag() const { return stag_; }
  SteeringTagAttributes query() const;

 private:
  std::shared_ptr<ProtectionDomain> domain_;
  STag stag_;
};

/// One registration.
class MemoryRegion {
 public:
  MemoryRegion(std::shared_ptr<ProtectionDomain> domain, std::span<std::byte> memory, Access access,
               std::optional<uint64_t> base, std::optional<STag> chosen = std::nullopt);

  /// As it was registered.
  const ddp::Region& region() const { return region_; }
  bool valid() const { return tag_.query().valid; }

 private:
  ddp::Region region_;
  SteeringTag tag_;
};

}  // namespace diwarp::rnic
