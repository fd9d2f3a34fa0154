// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>

#include <cstring>
#include <optional>

namespace random_calls {

/// The GID of this host's loopback address, and its index in a device's table.
struct LoopbackGid {
  ibv_gid gid;
  uint8_t index;
};

inline bool is_loopback(const ibv_gid& gid) {
  in6_addr address{};
  std::memcpy(&address, gid.raw, sizeof address);
  if (IN6_IS_ADDR_LOOPBACK(&address)) return true;
  return IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127;
}

/// Nothing where the device has none: on a host without IPv6, for example.
inline std::optional<LoopbackGid> loopback_gid(ibv_context* context) {
  LoopbackGid found{};
  for (; ibv_query_gid(context, 1, found.index, &found.gid) == 0; ++found.index)
    if (is_loopback(found.gid)) return found;
  return std::nullopt;
}

}  // namespace random_calls
