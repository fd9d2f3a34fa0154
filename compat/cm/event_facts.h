// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/connection_event.h>
#include <rdma/rdma_cma.h>

#include <array>
#include <cerrno>
#include <cstdint>

namespace diwarp::compat {

/// What a program is told of an event of the library's connection manager.
struct CmEventFacts {
  CmEventType of;
  rdma_cm_event_type type;
  /// The negative errno value of the event's status, whatever the error of the library's event;
  /// 0: as that says.
  int status;
};

/// As the kernel's has it for iWARP: there is no event between a reply and `established`.
inline constexpr std::array kCmEvents{
    CmEventFacts{CmEventType::addr_resolved, RDMA_CM_EVENT_ADDR_RESOLVED, 0},
    CmEventFacts{CmEventType::addr_error, RDMA_CM_EVENT_ADDR_ERROR, 0},
    CmEventFacts{CmEventType::route_resolved, RDMA_CM_EVENT_ROUTE_RESOLVED, 0},
    CmEventFacts{CmEventType::connect_request, RDMA_CM_EVENT_CONNECT_REQUEST, 0},
    CmEventFacts{CmEventType::connect_error, RDMA_CM_EVENT_CONNECT_ERROR, 0},
    CmEventFacts{CmEventType::unreachable, RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT},
    CmEventFacts{CmEventType::rejected, RDMA_CM_EVENT_REJECTED, 0},
    CmEventFacts{CmEventType::established, RDMA_CM_EVENT_ESTABLISHED, 0},
    CmEventFacts{CmEventType::disconnected, RDMA_CM_EVENT_DISCONNECTED, 0},
    CmEventFacts{CmEventType::device_removal, RDMA_CM_EVENT_DEVICE_REMOVAL, 0},
};

const CmEventFacts& facts_of(CmEventType type);

/// How many Reads and atomics an event tells of, where the peer may have said more than there are.
uint8_t told_depth(uint16_t depth);
/// The event without what belongs to its id: type, status and depths.
rdma_cm_event event_of(const CmEventInfo& info);

}  // namespace diwarp::compat
