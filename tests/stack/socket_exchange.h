// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <thread>

#include "stack/exchange.h"
#include "verbs/handle_access.h"

/// Two devices over real sockets of the host, whose parties exchange messages of all kinds.
namespace diwarp::test {

// Nothing goes past the sockets, unless the program's devices know nothing else.

inline DeviceOptions by_hand(DeviceOptions options = {}) {
  options.progress = Progress::manual;
  options.local = LocalPath::off;
  return options;
}
inline const DeviceOptions kByThreads{.progress = Progress::thread, .local = LocalPath::off};

/// A pair of devices on loopback.
struct Sockets {
  explicit Sockets(const DeviceOptions& options = by_hand(), const rnic::DeviceParts& parts = {})
      : devices{open(options, parts), open(options, parts)},
        stepped(options.progress == Progress::manual) {}

  static Device open(const DeviceOptions& options, const rnic::DeviceParts& parts) {
    return handle_of<Device>(
        std::make_shared<rnic::Device>(Address::parse("127.0.0.1"), options, parts));
  }

  void step() {
    if (!stepped) return std::this_thread::sleep_for(200us);
    for (Device& device : devices) device.progress();
  }
  uint64_t count(const char* counter) const {
    return devices[0].counter(counter) + devices[1].counter(counter);
  }

  std::array<Device, 2> devices;
  const bool stepped;
};

struct Datagrams : Sockets {
  explicit Datagrams(QpType type, const DeviceOptions& options = by_hand(),
                     const rnic::DeviceParts& parts = {})
      : Datagrams(exchange_options(type), options, parts) {}
  Datagrams(const PartyOptions& party, const DeviceOptions& options,
            const rnic::DeviceParts& parts = {})
      : Sockets(options, parts),
        a(devices[0], party),
        b(devices[1], party),
        region(b.pd, std::span(b.memory), kAllAccess) {}

  Exchange<Party> exchange() {
    return {a, b, b.address(), [this] { step(); }};
  }
  void run() { exchange().all(region); }

  Party a;
  Party b;
  MemoryRegion region;
};

struct Streams : Sockets {
  explicit Streams(int send_buffer = 0, const DeviceOptions& device = by_hand(),
                   const rnic::DeviceParts& parts = {})
      : Streams(socket_streams(send_buffer), device, parts) {}
  explicit Streams(std::pair<StreamEnd, StreamEnd> ends, const DeviceOptions& device = by_hand(),
                   const rnic::DeviceParts& parts = {})
      : Sockets(device, parts), a(devices[0], options()), b(devices[1], options()) {
    join(a, b, std::move(ends), {.ord = 4, .ird = 4});
  }
  static RcOptions options() { return {.memory = kExchangeMemory, .access = kOpen}; }

  void run() {
    const Exchange<RcParty> exchange{a, b, {}, [this] { step(); }};
    exchange.all(*b.mr);
  }

  RcParty a;
  RcParty b;
};

inline QpType datagram_types() { return GENERATE(QpType::ud, QpType::rd); }

/// Whether a device exchanges everything; told without test macros, for children.
inline bool exchanges_all(const DeviceOptions& options) {
  try {
    Datagrams(QpType::ud, options).run();
    Datagrams(QpType::rd, options).run();
    Streams(0, options).run();
  } catch (...) {
    return false;
  }
  return true;
}

}  // namespace diwarp::test
