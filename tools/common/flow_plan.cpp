// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/failure.h"
#include "common/flow.h"
#include "common/requests.h"

namespace diwarp::tools {
namespace {

constexpr uint32_t kCreditSlots = 32;
constexpr uint64_t kMaxMemory = uint64_t{4} << 30;

/// Receives beyond two windows absorb what incomplete messages hold over UD; they cost memory.
uint32_t receive_slots(const FlowPlan& plan) {
  constexpr uint64_t kMemory = uint64_t{16} << 20;
  constexpr uint64_t kMost = 512;
  const uint64_t wanted = std::min(kMost, kMemory / std::max<uint64_t>(plan.size, 1));
  return std::max(2 * plan.window, static_cast<uint32_t>(wanted));
}

}  // namespace

void check_plan(const FlowPlan& plan) {
  if (plan.window * plan.size <= kMaxMemory) return;
  throw Failure("A window of " + std::to_string(plan.window) + " messages of " +
                std::to_string(plan.size) + " bytes is too large: at most 4 GiB in all.");
}

EndpointShape sender_shape(const FlowPlan& plan) {
  if (facts_of(plan.operation).manner == Manner::requests) {
    EndpointShape shape = requester_shape(plan.operation, plan.size, plan.window, plan.transport);
    shape.segment = plan.segment;
    return shape;
  }
  return {.transport = plan.transport,
          .operation = plan.operation,
          .send_size = plan.size,
          .send_slots = plan.window,
          .receive_size = sizeof(uint64_t),
          .receive_slots = 2 * kCreditSlots * plan.receivers,
          .max_rate = plan.rate,
          .segment = plan.segment};
}

EndpointShape receiver_shape(const FlowPlan& plan) {
  const OperationFacts& facts = facts_of(plan.operation);
  if (facts.manner == Manner::requests) {
    EndpointShape shape = responder_shape(plan.operation, plan.size, plan.window, plan.transport);
    shape.max_rate = plan.rate;
    shape.segment = plan.segment;
    return shape;
  }
  const bool slots_written = facts.access == Access::remote_write;
  return {.transport = plan.transport,
          .grants = facts.access,
          .send_size = sizeof(uint64_t),
          .send_slots = kCreditSlots,
          .receive_size = plan.size,
          .receive_slots = slots_written ? plan.window : receive_slots(plan),
          .segment = plan.segment};
}

std::unique_ptr<FlowSource> make_flow_source(Endpoint& endpoint, const Peers& peers,
                                             const FlowPlan& plan) {
  if (facts_of(plan.operation).manner == Manner::requests) {
    return std::make_unique<RequestFlow>(endpoint, peers, plan);
  }
  return std::make_unique<FlowSender>(endpoint, peers, plan);
}

std::unique_ptr<FlowSink> make_flow_sink(Endpoint& endpoint, Control& control,
                                         const FlowPlan& plan) {
  if (facts_of(plan.operation).manner == Manner::requests) {
    return std::make_unique<Responder>(endpoint, control);
  }
  return std::make_unique<FlowReceiver>(endpoint, control, plan);
}

}  // namespace diwarp::tools
