// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/counters.h"
#include "base/shared_counters.h"
#include "ddp/stag_table.h"
#include "diwarp/attributes.h"
#include "diwarp/datagram_options.h"
#include "diwarp/device_options.h"
#include "diwarp/types.h"
#include "llp/backend.h"
#include "llp/connector.h"
#include "llp/datagram_link.h"
#include "llp/stream.h"
#include "provider/waitable.h"
#include "rnic/context/counter_log.h"
#include "rnic/engine/engine.h"

namespace diwarp::rnic {

class ConnectionControl;
class EventQueue;

/// Opens the link under a queue pair over datagrams in a backend's place, as Backend has it.
using DatagramLinkFactory = std::function<std::unique_ptr<llp::DatagramLink>(
    const Address& local, const DatagramOptions& options)>;

/// The context that every object of a device reaches: its engine, its STag table, its counters, the
/// numbers it gives out, its links, its events. Device, at the top, is the one kind of it.
class DeviceContext : public provider::Waitable {
 public:
  DeviceContext(const Address& address, const DeviceOptions& options, const Clock& clock);
  ~DeviceContext() override = default;
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  Duration before_wait(Duration limit) override;

  Engine& engine() { return engine_; }
  ddp::STagTable& regions() { return regions_; }
  const ddp::STagTable& regions() const { return regions_; }
  const Address& address() const { return address_; }
  /// As the log names the device.
  const std::string& name() const { return name_; }
  const DeviceOptions& options() const { return options_; }
  const Counters& counters() const { return counters_.get(); }
  Counters& counters() { return counters_.get(); }
  CounterLog& counter_log() { return counter_log_; }

  /// The control path of RC queue pairs. It is started at first use, which must not be with the
  /// baton held; throws Error where the system has no descriptor or thread for it.
  virtual ConnectionControl& connections() = 0;

  /// The link of a queue pair with these options.
  std::unique_ptr<llp::DatagramLink> open_datagram_link(const DatagramOptions& options) {
    const Address local = address_.with_port(options.port);
    return open_link_ ? open_link_(local, options) : backend_->open_datagrams(local, options);
  }
  /// Makes the streams of queue pairs.
  llp::Connector& connector() { return backend_->connector(); }

  /// A queue pair number for RC: `chosen`, or, where that is 0, one that is free. Throws Error.
  uint32_t take_number(uint32_t chosen);
  void return_number(uint32_t number);

  uint32_t next_domain() { return next_domain_.fetch_add(1); }
  uint32_t queue_pairs() const { return static_cast<uint32_t>(counters().get(Meter::queue_pairs)); }

  /// Tells every event queue of the device. Any thread, with the baton or without.
  void raise(const AsyncEvent& event);
  void add_event_queue(EventQueue& queue);
  void remove_event_queue(EventQueue& queue);

 protected:
  /// Before the first queue pair. Both outlive the engine. No factory: the backend opens links.
  void set_links(DatagramLinkFactory open_link, std::unique_ptr<llp::Backend> backend) {
    open_link_ = std::move(open_link);
    backend_ = std::move(backend);
  }
  llp::Backend& backend() { return *backend_; }
  const llp::Backend& backend() const { return *backend_; }

 private:
  const Address address_;
  const std::string name_;
  const DeviceOptions options_;
  SharedCounters counters_;
  DatagramLinkFactory open_link_;
  std::unique_ptr<llp::Backend> backend_;
  Engine engine_;
  CounterLog counter_log_;
  ddp::STagTable regions_;
  std::atomic<uint32_t> next_domain_{1};

  uint32_t take_chosen_number(uint32_t chosen);
  uint32_t take_free_number();

  std::mutex numbers_mutex_;    // guards what follows
  std::set<uint32_t> numbers_;  // in use by RC queue pairs
  uint32_t next_number_;

  std::mutex events_mutex_;  // guards event_queues_
  std::vector<EventQueue*> event_queues_;
};

}  // namespace diwarp::rnic
