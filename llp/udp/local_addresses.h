// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "diwarp/address.h"

namespace diwarp::llp {

/// The local address of a datagram's destination, without a port, unmapped.
Address address_in(const in_pktinfo& info);
Address address_in(const in6_pktinfo& info);

/// Control messages of one datagram, or train, that is to be sent.
class SendControl {
 public:
  /// Segments of so many bytes (UDP_SEGMENT).
  void add_segment_size(msghdr& header, size_t bytes);
  /// The local address that it leaves from (IP_PKTINFO, IPV6_PKTINFO).
  void add_source(msghdr& header, const Address& local);

 private:
  void add(msghdr& header, int level, int type, const void* data, size_t size);

  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(in6_pktinfo))> bytes_;
};

/// The addresses of this host at which a socket on all of them was reached, by numbers from 1 on. A
/// number keeps its meaning.
class LocalAddresses {
 public:
  /// Others have no number: a host can be made to answer for whole networks.
  static constexpr size_t kMost = 256;

  /// 0: there is no room, or no memory, for another.
  uint32_t number_of(const Address& address);
  const Address& at(uint32_t number) const { return addresses_[number - 1]; }

 private:
  std::vector<Address> addresses_;
  uint32_t latest_ = 0;  // most datagrams come in trains
};

}  // namespace diwarp::llp
