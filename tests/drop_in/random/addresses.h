// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <sys/socket.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "drop_in/random/world.h"

namespace random_calls {

/// An address as calls take it; null where it is made without.
class SocketAddress {
 public:
  SocketAddress() = default;
  SocketAddress(const char* host, uint16_t port) {
    if (std::string_view(host).find(':') != std::string_view::npos) {
      auto& name = reinterpret_cast<sockaddr_in6&>(storage_);
      name.sin6_family = AF_INET6;
      name.sin6_port = htons(port);
      ::inet_pton(AF_INET6, host, &name.sin6_addr);
    } else {
      auto& name = reinterpret_cast<sockaddr_in&>(storage_);
      name.sin_family = AF_INET;
      name.sin_port = htons(port);
      ::inet_pton(AF_INET, host, &name.sin_addr);
    }
    there_ = true;
  }

  static SocketAddress of_unknown_family() {
    SocketAddress made;
    made.storage_.ss_family = AF_UNIX;
    made.there_ = true;
    return made;
  }

  sockaddr* get() { return there_ ? reinterpret_cast<sockaddr*>(&storage_) : nullptr; }
  socklen_t length() const {
    return storage_.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
  }

 private:
  sockaddr_storage storage_{};
  bool there_ = false;
};

/// To bind to. 192.0.2.1 is nobody's.
inline SocketAddress some_own_address(World& world) {
  switch (world.random.below(12)) {
    case 0:
      return {"0.0.0.0", 0};
    case 1:
      return {"::", 0};
    case 2:
      return {"::1", 0};
    case 3:
      return {"192.0.2.1", 0};
    case 4:
      return {"127.0.0.1", world.closed.tcp()};
    case 5:
      return {"127.0.0.1", world.closed.udp()};
    case 6:
      return SocketAddress::of_unknown_family();
    case 7:
      return {};
    case 8:
      return {"::ffff:127.0.0.1", 0};
    default:
      return {"127.0.0.1", 0};
  }
}

/// Ports that ids of this process have: some of these listen.
inline std::vector<uint16_t> bound_ports(const World& world, rdma_port_space space) {
  std::vector<uint16_t> ports;
  for (rdma_cm_id* id : world.ids)
    if (const uint16_t port = ntohs(rdma_get_src_port(id)); id->ps == space && port != 0)
      ports.push_back(port);
  return ports;
}

/// To resolve: this host's loopback, at a port of this process.
inline SocketAddress some_peer_address(World& world, rdma_port_space space) {
  Randomness& random = world.random;
  const std::vector<uint16_t> ports = bound_ports(world, space);
  const uint16_t closed = space == RDMA_PS_UDP ? world.closed.udp() : world.closed.tcp();
  const uint16_t port = ports.empty() || random.chance(10) ? closed : random.one_of(ports);
  switch (random.below(12)) {
    case 0:
      return {"::1", port};
    case 1:
      return {"0.0.0.0", port};
    case 2:
      return SocketAddress::of_unknown_family();
    case 3:
      return {};
    case 4:
      return {"127.0.0.1", 0};
    default:
      return {"127.0.0.1", port};
  }
}

}  // namespace random_calls
