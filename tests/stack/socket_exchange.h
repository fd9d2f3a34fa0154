// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <thread>

#include "stack/exchange.h"

/// Two devices over real sockets of the host, whose parties exchange messages of all kinds.
namespace diwarp::test {

inline DeviceOptions by_hand(DeviceOptions options = {}) {
  options.progress = Progress::manual;
  return options;
}
inline const DeviceOptions kByThreads{.progress = Progress::thread};

/// A pair of devices on loopback.
struct Sockets {
  explicit Sockets(const DeviceOptions& options = by_hand())
      : devices{Device::open("127.0.0.1", options), Device::open("127.0.0.1", options)},
        stepped(options.progress == Progress::manual) {}

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
  explicit Datagrams(QpType type, const DeviceOptions& options = by_hand())
      : Datagrams(exchange_options(type), options) {}
  Datagrams(const PartyOptions& party, const DeviceOptions& options)
      : Sockets(options),
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
  explicit Streams(int send_buffer = 0, const DeviceOptions& device = by_hand())
      : Streams(tcp_streams(send_buffer), device) {}
  explicit Streams(std::pair<StreamEnd, StreamEnd> ends, const DeviceOptions& device = by_hand())
      : Sockets(device), a(devices[0], options()), b(devices[1], options()) {
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

/// Runs a body in a process of its own: what it sets there stays there.
inline bool in_child(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace diwarp::test
