// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/failure.h"
#include "common/flow_loop.h"
#include "common/pairing.h"
#include "common/socket.h"
#include "compare/verbs_lanes.h"

namespace diwarp::tools {
namespace {

FlowPlan plan_of(const VerbsWay& way, const Control& control) {
  FlowPlan plan{.transport = way.transport,
                .operation = way.operation,
                .size = way.size,
                .window = way.window,
                .crc = way.crc};
  if (is_datagram(way.transport)) plan.segment.size = kSegment;
  if (plan.window == 0) {
    const size_t buffer = granted_receive_buffer(control.local_address().with_port(0),
                                                 DeviceOptions{}.udp_receive_buffer);
    plan.window = default_window(way.transport, way.operation, way.size, buffer);
  }
  return plan;
}

/// The flow that diwarp-bandwidth measures.
class VerbsFlow final : public Lane {
 public:
  VerbsFlow(const Place& place, const VerbsWay& way)
      : control_(place.control),
        plan_(plan_of(way, place.control)),
        device_(place.open_device()),
        endpoint_(device_, place.side == Side::near ? sender_shape(plan_) : receiver_shape(plan_)) {
    if (place.side == Side::near) {
      source_ = make_flow_source(endpoint_, control_, plan_);
      endpoint_.post_receives();
      pair_as_client(endpoint_, control_, {{"type", "row"}}, 0);
    } else {
      sink_ = make_flow_sink(endpoint_, control_, plan_);
      endpoint_.post_receives();
      pair_as_server(endpoint_, device_, control_, control_.expect("row"), 0);
    }
  }

  Sample measure(Duration time) override {
    // The second tells how many messages fill the time, the first warms up for it.
    send(kFewest);
    const Sample warm = send(kFewest);
    const double seconds = std::chrono::duration<double>(time).count();
    const double messages = warm.value / static_cast<double>(plan_.size) * seconds;
    send(std::clamp(static_cast<uint64_t>(messages / 4), kFewest, kMost));
    const Sample sample = send(std::clamp(static_cast<uint64_t>(messages), kFewest, kMost));
    control_.send({{"type", "stop"}});
    part(endpoint_);
    return sample;
  }

  void serve() override {
    while (true) {
      const Json word = control_.next();
      if (text_in(word, "type") == "stop") break;
      const uint64_t messages = number_in(word, "count", 1, kMost);
      Json result = to_json(run_sink(*sink_, endpoint_, control_, messages));
      result["flow"] = 0;
      control_.send(result);
    }
    part(endpoint_);
  }

 private:
  static constexpr uint64_t kFewest = 16;
  static constexpr uint64_t kMost = 100'000'000;

  Sample send(uint64_t count) {
    control_.send({{"type", "flow"}, {"count", count}});
    const Json result = run_source(*source_, endpoint_, control_, count).front();
    if (result["wrong"] != 0) throw Failure(text_in(result, "first_wrong"));
    const Duration elapsed = source_->ended() - source_->started();
    const double seconds = std::chrono::duration<double>(elapsed).count();
    const uint64_t bytes = number_in(result, "valid_bytes", 0, UINT64_MAX);
    const uint64_t sent = count * plan_.size;
    if (bytes == 0 || seconds <= 0) throw Failure("Nothing of what was sent arrived.");
    return {.value = static_cast<double>(bytes) / seconds,
            .sent = sent,
            .lost = sent - std::min(sent, bytes)};
  }

  Control& control_;
  FlowPlan plan_;
  Device device_;
  Endpoint endpoint_;
  std::unique_ptr<FlowSource> source_;
  std::unique_ptr<FlowSink> sink_;
};

}  // namespace

std::unique_ptr<Lane> make_verbs_flow(const Place& place, const VerbsWay& way) {
  return std::make_unique<VerbsFlow>(place, way);
}

}  // namespace diwarp::tools
