// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "diwarp/address.h"

namespace diwarp::llp {

/// The largest payload of a UDP datagram over IPv6 (65,535 - 40 - 8 bytes); over IPv4 it is
/// kMaxDatagram (65,535 - 20 - 8).
inline constexpr size_t kMaxDatagramIpv6 = 65487;

/// The largest UDP payload that reaches a host as one wire packet, remembered for the hosts used
/// last. The kernel is asked over a connected socket of a moment, so that what it learned from
/// ICMP, for whatever socket, counts. One host needs no heap; more take a table that grows to its
/// bound as hosts compete for places (and does not where memory cannot be had). For one thread.
class PathMtu {
 public:
  /// `source` is the address that the datagrams come from; routes may depend on it. `interface` is
  /// the index of the one where multicasts leave; 0: the system's choice.
  explicit PathMtu(const Address& source, uint32_t interface = 0)
      : source_(source), interface_(interface) {}

  /// Bytes: path MTU - 28 (IPv4, at most 65,507) or - 48 (IPv6, at most 65,487). For a host that
  /// cannot be reached, what every path carries: 548 or 1,232. Costs a few nanoseconds when the
  /// host was asked for within the last minute, else some system calls.
  size_t max_datagram(const Address& to);

  /// The next max_datagram() for this host asks the kernel.
  void forget(const Address& to);

 private:
  /// A host without port: cheap to make, compare and hash.
  struct Host {
    uint64_t high = 0;
    uint64_t low = 0;
    uint64_t scope_and_family = 0;
    friend bool operator==(const Host&, const Host&) = default;
  };
  struct Entry {
    Host host;
    int64_t expires = 0;  // nanoseconds of the coarse monotonic clock; 0: empty
    size_t payload = 0;
  };
  static constexpr size_t kFirstTable = 16;
  static constexpr size_t kLargestTable = 256;

  static Host host_of(const Address& address);
  /// The place of this host, which may hold another.
  Entry& place(const Host& host);
  void grow();
  void measure(const Address& to, Entry& entry) const;

  Address source_;
  uint32_t interface_;
  uint32_t size_ = 1;               // a power of two
  Entry only_;                      // while there is no table
  std::unique_ptr<Entry[]> table_;  // of size_
};

}  // namespace diwarp::llp
