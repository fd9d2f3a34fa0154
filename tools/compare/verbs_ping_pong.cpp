// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "common/pairing.h"
#include "compare/idle_queue_pairs.h"
#include "compare/ping_lane.h"
#include "compare/verbs_lanes.h"

namespace diwarp::tools {
namespace {

class VerbsPing final : public PingLane {
 public:
  VerbsPing(const Place& place, const VerbsWay& way)
      : PingLane(place.control),
        device_(place.open_device(device_options(way))),
        idle_(device_, QpType::ud, way.idle_queue_pairs),
        endpoint_(device_, shape(place.side, way)) {
    endpoint_.post_receives();
    Control& control = place.control;
    if (place.side == Side::near) {
      near_ = make_near_end(endpoint_, control, false, way.waiting);
      pair_as_client(endpoint_, control, {{"type", "row"}}, 0);
    } else {
      far_ = make_far_end(endpoint_, control, way.operation, false, way.waiting);
      pair_as_server(endpoint_, device_, control, control.expect("row"), 0);
    }
  }

 private:
  /// An RNIC thread that spins would keep the processor from the end that looks at its memory, as
  /// there may be but one for both (docs/threading.md).
  static DeviceOptions device_options(const VerbsWay& way) {
    DeviceOptions options;
    if (way.waiting == Waiting::idle) options.spin = Duration::zero();
    return options;
  }

  static EndpointShape shape(Side side, const VerbsWay& way) {
    EndpointShape shape = side == Side::near ? near_shape(way.transport, way.operation, way.size)
                                             : far_shape(way.transport, way.operation, way.size);
    if (is_datagram(way.transport)) shape.segment.size = kSegment;
    shape.crc = way.crc;
    return shape;
  }

  std::optional<Duration> ping() override { return near_->ping(); }
  void echo() override { far_->run(); }
  void finish() override { part(endpoint_); }

  Device device_;
  IdleQueuePairs idle_;
  Endpoint endpoint_;
  std::unique_ptr<NearEnd> near_;
  std::unique_ptr<FarEnd> far_;
};

}  // namespace

std::unique_ptr<Lane> make_verbs_ping_pong(const Place& place, const VerbsWay& way) {
  return std::make_unique<VerbsPing>(place, way);
}

void raise_descriptor_limit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string descriptors_obstacle(uint32_t queue_pairs) {
  constexpr rlim_t kOthers = 1000;
  const rlim_t wanted = queue_pairs + kOthers;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= wanted) return "";
  return "needs " + std::to_string(wanted) + " file descriptors (ulimit -Hn)";
}

}  // namespace diwarp::tools
