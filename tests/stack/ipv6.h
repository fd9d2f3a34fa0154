// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdio>

#include "base/unique_fd.h"
#include "stack/support.h"

/// For cases over IPv6, which not every host has.
namespace diwarp::test {

inline bool has_ipv6() {
  const UniqueFd fd(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage name;
  const socklen_t length = Address::loopback(AddressFamily::ipv6).to_sockaddr(name);
  return fd.get() >= 0 && ::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), length) == 0;
}

}  // namespace diwarp::test

#define SKIP_WITHOUT_IPV6()                               \
  if (!has_ipv6()) {                                      \
    std::puts("SKIPPED: this host has no IPv6 loopback"); \
    return;                                               \
  }
