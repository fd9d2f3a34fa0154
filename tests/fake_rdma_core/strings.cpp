// SPDX-License-Identifier: Apache-2.0
#include "fake_rdma_core/strings.h"

#include <array>
#include <cstddef>

namespace fake {
namespace {

constexpr std::array kNodeTypes = {
    "unknown",           "InfiniBand channel adapter",
    "InfiniBand switch", "InfiniBand router",
    "iWARP NIC",         "usNIC",
    "usNIC UDP",         "unspecified",
};

constexpr std::array kStatuses = {
    "success",
    "local length error",
    "local QP operation error",
    "local EE context operation error",
    "local protection error",
    "Work Request Flushed Error",
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
    "TM error",
    "TM software rendezvous",
};

constexpr std::array kEvents = {
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
    "WQ fatal",
};

constexpr std::array kCmEvents = {
    "RDMA_CM_EVENT_ADDR_RESOLVED",   "RDMA_CM_EVENT_ADDR_ERROR",
    "RDMA_CM_EVENT_ROUTE_RESOLVED",  "RDMA_CM_EVENT_ROUTE_ERROR",
    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
    "RDMA_CM_EVENT_CONNECT_ERROR",   "RDMA_CM_EVENT_UNREACHABLE",
    "RDMA_CM_EVENT_REJECTED",        "RDMA_CM_EVENT_ESTABLISHED",
    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
    "RDMA_CM_EVENT_MULTICAST_JOIN",  "RDMA_CM_EVENT_MULTICAST_ERROR",
    "RDMA_CM_EVENT_ADDR_CHANGE",     "RDMA_CM_EVENT_TIMEWAIT_EXIT",
};

template <size_t size>
const char* name_at(const std::array<const char*, size>& names, int index) {
  return index >= 0 && static_cast<size_t>(index) < size ? names[static_cast<size_t>(index)]
                                                         : "unknown";
}

}  // namespace

const char* node_type_name(int type) { return name_at(kNodeTypes, type); }
const char* wc_status_name(int status) { return name_at(kStatuses, status); }
const char* event_type_name(int type) { return name_at(kEvents, type); }
const char* cm_event_name(int type) { return name_at(kCmEvents, type); }

}  // namespace fake
