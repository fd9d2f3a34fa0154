// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "diwarp/address.h"

namespace diwarp::llp {

/// The largest UDP payload that reaches a host as one wire packet, remembered for the hosts used
/// last. The kernel is asked over a connected socket of a moment, so that what it learned from
/// ICMP, for whatever socket, counts. For one thread.
class PathMtu {
 public:
  /// `source` is the address that the datagrams come from; routes may depend on it.
  explicit PathMtu(const Address& source) : source_(source) {}

  /// Bytes: path MTU - 28 (IPv4, at most 65,507) or - 48 (IPv6, at most 65,487). For a host that
  /// cannot be reached, what every path carries: 548 or 1,232. Costs a few nanoseconds when the
  /// host was asked for within the last minute, else some system calls.
  size_t max_datagram(const Address& to);

  /// The next max_datagram() for this host asks the kernel.
  void forget(const Address& to);

 private:
  struct Entry {
    Address host;  // without port
    uint32_t payload = 0;
    int64_t expires = 0;  // nanoseconds of the coarse monotonic clock; 0: empty
  };
  static constexpr size_t kEntries = 256;

  Entry& entry(const Address& host) { return entries_[host.hash() % kEntries]; }
  Entry measure(const Address& host) const;

  Address source_;
  std::array<Entry, kEntries> entries_{};
};

}  // namespace diwarp::llp
