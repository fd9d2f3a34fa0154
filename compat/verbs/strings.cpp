// SPDX-License-Identifier: Apache-2.0
// Names of values, and rates.
#include <infiniband/verbs.h>

#include <array>
#include <cstddef>

#include "compat/common/export.h"

namespace {

constexpr std::array kStatuses{
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "work request flushed",
    "memory management operation error",
    "bad response error",
    "local access error",
    "remote invalid request error",
    "remote access error",
    "remote operation error",
    "transport retry counter exceeded",
    "RNR retry counter exceeded",
    "local RDD violation error",
    "remote invalid RD request",
    "aborted error",
    "invalid EE context number",
    "invalid EE context state",
    "fatal error",
    "response timeout error",
    "general error",
    "tag matching error",
    "tag matching rendezvous incomplete",
};

constexpr std::array kEvents{
    "CQ error",
    "local work queue catastrophic error",
    "invalid request local work queue error",
    "local access violation work queue error",
    "communication established",
    "send queue drained",
    "path migrated",
    "path migration request error",
    "local catastrophic error",
    "port active",
    "port error",
    "LID change",
    "P_Key change",
    "SM change",
    "SRQ catastrophic error",
    "SRQ limit reached",
    "last WQE reached",
    "client reregistration",
    "GID table change",
    "WQ fatal error",
};

constexpr std::array kPortStates{
    "no state change (NOP)", "down", "init", "armed", "active", "active defer",
};

struct NodeName {
  ibv_node_type of;
  const char* name;
};
constexpr NodeName kNodes[] = {
    {IBV_NODE_CA, "InfiniBand channel adapter"},
    {IBV_NODE_SWITCH, "InfiniBand switch"},
    {IBV_NODE_ROUTER, "InfiniBand router"},
    {IBV_NODE_RNIC, "iWARP NIC"},
    {IBV_NODE_USNIC, "usNIC"},
    {IBV_NODE_USNIC_UDP, "usNIC UDP"},
    {IBV_NODE_UNSPECIFIED, "unspecified"},
};

struct Rate {
  ibv_rate rate;
  int multiple;  ///< of 2.5 Gbit/s; -1: it is none
  int mbps;
};
constexpr Rate kRates[] = {
    {IBV_RATE_2_5_GBPS, 1, 2500},    {IBV_RATE_5_GBPS, 2, 5000},
    {IBV_RATE_10_GBPS, 4, 10000},    {IBV_RATE_20_GBPS, 8, 20000},
    {IBV_RATE_30_GBPS, 12, 30000},   {IBV_RATE_40_GBPS, 16, 40000},
    {IBV_RATE_60_GBPS, 24, 60000},   {IBV_RATE_80_GBPS, 32, 80000},
    {IBV_RATE_120_GBPS, 48, 120000}, {IBV_RATE_14_GBPS, -1, 14062},
    {IBV_RATE_56_GBPS, -1, 56250},   {IBV_RATE_112_GBPS, -1, 112500},
    {IBV_RATE_168_GBPS, -1, 168750}, {IBV_RATE_25_GBPS, -1, 25781},
    {IBV_RATE_100_GBPS, -1, 103125}, {IBV_RATE_200_GBPS, -1, 206250},
    {IBV_RATE_300_GBPS, -1, 309375}, {IBV_RATE_28_GBPS, -1, 28125},
    {IBV_RATE_50_GBPS, -1, 53125},   {IBV_RATE_400_GBPS, -1, 425000},
    {IBV_RATE_600_GBPS, -1, 637500},
};

template <size_t Count>
const char* name_of(const std::array<const char*, Count>& names, unsigned value) {
  return value < Count ? names[value] : "unknown";
}

}  // namespace

extern "C" {

DIWARP_COMPAT_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) {
  return name_of(kStatuses, static_cast<unsigned>(status));
}

DIWARP_COMPAT_EXPORT const char* ibv_event_type_str(ibv_event_type type) {
  return name_of(kEvents, static_cast<unsigned>(type));
}

DIWARP_COMPAT_EXPORT const char* ibv_port_state_str(ibv_port_state state) {
  return name_of(kPortStates, static_cast<unsigned>(state));
}

DIWARP_COMPAT_EXPORT const char* ibv_node_type_str(ibv_node_type type) {
  for (const NodeName& node : kNodes)
    if (node.of == type) return node.name;
  return "unknown";
}

DIWARP_COMPAT_EXPORT int ibv_rate_to_mult(ibv_rate rate) {
  for (const Rate& one : kRates)
    if (one.rate == rate) return one.multiple;
  return -1;
}

DIWARP_COMPAT_EXPORT ibv_rate mult_to_ibv_rate(int multiple) {
  for (const Rate& one : kRates)
    if (one.multiple == multiple && multiple > 0) return one.rate;
  return IBV_RATE_MAX;
}

DIWARP_COMPAT_EXPORT int ibv_rate_to_mbps(ibv_rate rate) {
  for (const Rate& one : kRates)
    if (one.rate == rate) return one.mbps;
  return -1;
}

DIWARP_COMPAT_EXPORT ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const Rate& one : kRates)
    if (one.mbps == mbps) return one.rate;
  return IBV_RATE_MAX;
}

}  // extern "C"
