// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/failure.h"
#include "common/flow.h"

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
  return {.transport = plan.transport,
          .send_size = plan.size,
          .send_slots = plan.window,
          .receive_size = sizeof(uint64_t),
          .receive_slots = 2 * kCreditSlots,
          .max_rate = plan.rate};
}

EndpointShape receiver_shape(const FlowPlan& plan) {
  return {.transport = plan.transport,
          .send_size = sizeof(uint64_t),
          .send_slots = kCreditSlots,
          .receive_size = plan.size,
          .receive_slots = receive_slots(plan)};
}

}  // namespace diwarp::tools
