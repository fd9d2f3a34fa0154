// SPDX-License-Identifier: Apache-2.0
#include "fuzz/cm_model.h"

#include <string>

#include "fuzz/input.h"

namespace diwarp::fuzz {

bool CmModel::allows(Call call) const {
  switch (call) {
    case Call::resolve_addr:
    case Call::listen:
      return stage_ == Stage::idle || stage_ == Stage::bound;
    case Call::bind:
      return stage_ == Stage::idle;
    case Call::resolve_route:
      return stage_ == Stage::resolved;
    case Call::connect:
      return stage_ == Stage::resolved || stage_ == Stage::routed;
    case Call::accept:
    case Call::reject:
      return stage_ == Stage::requested;
    case Call::disconnect:
      return stage_ == Stage::accepting || stage_ == Stage::established || stage_ == Stage::over;
  }
  return false;
}

void CmModel::called(Call call) {
  switch (call) {
    case Call::resolve_addr:
      resolving_ = true;
      return;
    case Call::bind:
      stage_ = Stage::bound;
      return;
    case Call::resolve_route:
      stage_ = Stage::routed;
      return;
    case Call::listen:
      stage_ = Stage::listening;
      return;
    case Call::connect:
      stage_ = Stage::connecting;
      return;
    case Call::accept:
      stage_ = Stage::accepting;
      return;
    case Call::reject:
      stage_ = Stage::over;
      return;
    case Call::disconnect:
      return;
  }
}

bool CmModel::may_come(CmEventType type) const {
  switch (type) {
    case CmEventType::addr_resolved:
    case CmEventType::addr_error:
      return resolving_;
    case CmEventType::route_resolved:
      return stage_ == Stage::routed;
    case CmEventType::rejected:
    case CmEventType::unreachable:
      return stage_ == Stage::connecting;
    case CmEventType::established:
    case CmEventType::connect_error:
      return stage_ == Stage::connecting || stage_ == Stage::accepting;
    case CmEventType::disconnected:
      return stage_ == Stage::established;
    default:
      return false;
  }
}

void CmModel::take(const CmEventInfo& event) {
  if (!may_come(event.type))
    fail("an id that may not have it has the event '" + std::string(to_string(event.type)) + "'");
  require(event.context == context_, "an event has the context of another id");
  const bool failed = event.type == CmEventType::addr_error ||
                      event.type == CmEventType::connect_error ||
                      event.type == CmEventType::unreachable || event.type == CmEventType::rejected;
  require(!failed || event.status, "an event about a failure does not tell why");
  if (resolving_) {
    resolving_ = false;
    if (event.type == CmEventType::addr_resolved) stage_ = Stage::resolved;
    return;
  }
  if (event.type == CmEventType::route_resolved) return;
  stage_ = event.type == CmEventType::established ? Stage::established : Stage::over;
}

}  // namespace diwarp::fuzz
