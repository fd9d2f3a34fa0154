// SPDX-License-Identifier: Apache-2.0
#include "compat/cm/event_facts.h"

#include <diwarp/error.h>

#include <algorithm>
#include <cerrno>

#include "compat/common/depth_limit.h"
#include "compat/common/error.h"

namespace diwarp::compat {
namespace {

int status_of(const CmEventFacts& facts, const CmEventInfo& info) {
  if (facts.status != 0) return facts.status;
  // The kernel tells of an end, and not why.
  if (info.type == CmEventType::disconnected) return 0;
  // A peer that said no, as siw tells it. Where nobody listens it is ECONNREFUSED.
  if (info.status == make_error_code(Errc::rejected)) return -ECONNRESET;
  return info.status ? -errno_of(info.status) : 0;
}

}  // namespace

const CmEventFacts& facts_of(CmEventType type) {
  return *std::find_if(kCmEvents.begin(), kCmEvents.end(),
                       [type](const CmEventFacts& one) { return one.of == type; });
}

uint8_t told_depth(uint16_t depth) {
  return static_cast<uint8_t>(std::min<uint16_t>(depth, kMaxDepth));
}

rdma_cm_event event_of(const CmEventInfo& info) {
  const CmEventFacts& facts = facts_of(info.type);
  rdma_cm_event event{};
  event.event = facts.type;
  event.status = status_of(facts, info);
  rdma_conn_param& conn = event.param.conn;
  // A request tells what the peer wants and has. After that the kernel tells this side's own
  // depths, each under the other's name.
  const bool established = info.type == CmEventType::established;
  conn.initiator_depth = told_depth(established ? info.ird : info.ord);
  conn.responder_resources = told_depth(established ? info.ord : info.ird);
  return event;
}

}  // namespace diwarp::compat
