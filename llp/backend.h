// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/counters.h"
#include "diwarp/address.h"
#include "diwarp/attributes.h"
#include "diwarp/datagram_options.h"
#include "diwarp/device_options.h"
#include "llp/connector.h"
#include "llp/datagram_link.h"

namespace diwarp::llp {

/// The means that move the bytes of one device, as users are told.
struct BackendDescription {
  std::string datagrams;
  std::string streams;
};

/// How one device moves bytes. It outlives the device's engine, links and streams. Any thread.
///
/// Engines wait for descriptors with the Poller (epoll), which serves every backend; a backend
/// whose input something else gathers gives its links and streams an InputQueue.
class Backend {
 public:
  virtual ~Backend() = default;

  /// The link of a queue pair: at `local`, or on the options' descriptor, and as they want it
  /// (jumbo, group). Throws Error.
  virtual std::unique_ptr<DatagramLink> open_datagrams(const Address& local,
                                                       const DatagramOptions& options) = 0;
  /// Lives as long as this.
  virtual Connector& connector() = 0;

  virtual BackendDescription describe() const = 0;
  /// The means that the system gives to a datagram link at `local`. May open one of its own. Throws
  /// Error.
  virtual DatagramSocketAttributes query_datagrams(const Address& local) const = 0;

  /// Called, by any thread, when an InputQueue of the backend's has something of which its
  /// descriptor does not tell.
  virtual void on_ready(std::function<void()> /*callback*/) {}
};

/// The device that a backend is for; its options and counters outlive it.
struct BackendSetup {
  const DeviceOptions& options;
  Counters& counters;
  const Address& address;
  const Clock& clock;  ///< the device's; it outlives the backend
};

/// One kind of backend.
struct BackendRow {
  std::string_view name;           ///< as messages have it
  IoBackend io;                    ///< which DeviceOptions::io asks for it
  std::string_view why_automatic;  ///< of devices with IoBackend::automatic, if it is their choice

  /// Null where the system does not allow it or lacks something: then `why_not` is a message.
  std::unique_ptr<Backend> (*open)(const BackendSetup& setup, std::string& why_not);
  /// Why this process cannot have it; empty: it can.
  std::string (*why_unavailable)();
  /// 0, or the errno that tells why no device can have this address.
  int (*check_local)(const Address& address);
};

/// All kinds that devices may have. The first is what IoBackend::automatic stands for; that of
/// IoBackend::syscall can always be had. Alone in its file, llp/backends/backend_table.cpp: a test
/// program may have its own.
std::span<const BackendRow> backend_table();

}  // namespace diwarp::llp
