// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/flow.h"
#include "common/flow_receiver.h"
#include "common/flow_sender.h"
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

uint32_t default_window(QpType transport, Operation operation, uint64_t size,
                        uint64_t receive_buffer) {
  // More on the way than that would only push each other out of the cache.
  constexpr uint64_t kReliableBytes = uint64_t{4} << 20;
  constexpr uint64_t kDatagramReadBytes = uint64_t{1} << 20;
  const bool lossy = !is_reliable(transport);
  const bool requests = info_of(operation).manner == Manner::requests;
  const auto within = [&](uint64_t bytes, uint64_t least, uint64_t most) {
    return static_cast<uint32_t>(std::clamp(bytes / std::max<uint64_t>(size, 1), least, most));
  };
  if (!lossy) return within(kReliableBytes, 2, requests ? kOutstandingRequests : 128);
  if (requests) {
    // A Read has no more than that under way, in its parts.
    const uint64_t at_once = std::clamp(size, uint64_t{1}, uint64_t{512} << 10);
    const uint64_t together = std::min(receive_buffer / 2, kDatagramReadBytes);
    return static_cast<uint32_t>(std::clamp<uint64_t>(together / at_once, 1, kOutstandingRequests));
  }
  // Messages that do not fit even one by one would only push each other out.
  if (size > receive_buffer) return 1;
  return within(std::min(receive_buffer, uint64_t{512} << 10), 2, 128);
}

void check_plan(const FlowPlan& plan, uint32_t flows) {
  if (plan.size * plan.window <= kMaxMemory / flows) return;
  throw Failure("A window of " + std::to_string(plan.window) + " messages of " +
                std::to_string(plan.size) + " bytes" +
                (flows > 1 ? ", " + std::to_string(flows) + " times," : std::string()) +
                " is too large: at most 4 GiB in all.");
}

EndpointShape sender_shape(const FlowPlan& plan) {
  if (info_of(plan.operation).manner == Manner::requests) {
    EndpointShape shape = requester_shape(plan.operation, plan.size, plan.window, plan.transport);
    shape.segment = plan.segment;
    shape.congestion = plan.congestion;
    shape.transmissions = plan.transmissions;
    shape.crc = plan.crc;
    return shape;
  }
  return {.transport = plan.transport,
          .operation = plan.operation,
          .send_size = plan.size,
          .send_slots = plan.window,
          .receive_size = sizeof(uint64_t),
          .receive_slots = 2 * kCreditSlots * plan.receivers,
          .max_rate = plan.rate,
          .segment = plan.segment,
          .congestion = plan.congestion,
          .transmissions = plan.transmissions,
          .crc = plan.crc};
}

EndpointShape receiver_shape(const FlowPlan& plan) {
  const OperationInfo& info = info_of(plan.operation);
  if (info.manner == Manner::requests) {
    EndpointShape shape = responder_shape(plan.operation, plan.size, plan.window, plan.transport);
    shape.max_rate = plan.rate;
    shape.segment = plan.segment;
    shape.congestion = plan.congestion;
    shape.transmissions = plan.transmissions;
    shape.crc = plan.crc;
    return shape;
  }
  const bool slots_written = info.access == Access::remote_write;
  return {.transport = plan.transport,
          .grants = info.access,
          .send_size = sizeof(uint64_t),
          .send_slots = kCreditSlots,
          .receive_size = plan.size,
          .receive_slots = slots_written ? plan.window : receive_slots(plan),
          .segment = plan.segment,
          .completion = plan.completion,
          .congestion = plan.congestion,
          .transmissions = plan.transmissions,
          .crc = plan.crc};
}

Json to_json(const FlowCount& count) {
  return {{"type", "result"},         {"received", count.received},
          {"partial", count.partial}, {"valid_bytes", count.valid_bytes},
          {"wrong", count.wrong},     {"first_wrong", count.first_wrong},
          {"next", count.next},       {"gaps", to_json(count.gaps)}};
}

std::unique_ptr<FlowSource> make_flow_source(Endpoint& endpoint, const Peers& peers,
                                             const FlowPlan& plan, uint32_t flow) {
  if (info_of(plan.operation).manner == Manner::requests) {
    return std::make_unique<RequestFlow>(endpoint, peers, plan, flow);
  }
  return std::make_unique<FlowSender>(endpoint, peers, plan, flow);
}

std::unique_ptr<FlowSink> make_flow_sink(Endpoint& endpoint, Control& control, const FlowPlan& plan,
                                         uint32_t flow) {
  if (info_of(plan.operation).manner == Manner::requests) {
    return std::make_unique<Responder>(endpoint, control);
  }
  return std::make_unique<FlowReceiver>(endpoint, control, plan, flow);
}

}  // namespace diwarp::tools
