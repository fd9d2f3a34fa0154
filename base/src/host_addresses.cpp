// SPDX-License-Identifier: Apache-2.0
#include "base/host_addresses.h"

#include <ifaddrs.h>
#include <sys/socket.h>

namespace diwarp {

std::vector<Address> host_addresses() {
  std::vector<Address> all;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return all;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const int family = one->ifa_addr != nullptr ? one->ifa_addr->sa_family : AF_UNSPEC;
    if (family == AF_INET || family == AF_INET6)
      all.push_back(Address::from_sockaddr(one->ifa_addr).with_port(0));
  }
  ::freeifaddrs(list);
  return all;
}

}  // namespace diwarp
