// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>

#include "compare/fabric.h"
#include "compare/lane.h"
#include "compare/memory.h"
#include "compare/socket_lanes.h"
#include "compare/ucx.h"
#include "compare/verbs_lanes.h"

namespace diwarp::tools {
namespace {

constexpr size_t kSmall = 64;
constexpr size_t kKilo = 1024;
constexpr size_t kMega = size_t{1} << 20;
constexpr uint32_t kWindow = 64;
constexpr uint32_t kManyActive = 64;
constexpr uint32_t kManyIdle = 10'000;

using Make = std::function<std::unique_ptr<Lane>(const Place&)>;

/// The longest datagram over IPv4.
constexpr size_t kLongestDatagram = 65507;

template <class Way>
Way sized(Way way, const Place& place) {
  way.size = place.size.value_or(way.size);
  return way;
}

Make ping(const VerbsWay& way) {
  return [way](const Place& place) { return make_verbs_ping_pong(place, sized(way, place)); };
}

Make flow(const VerbsWay& way) {
  return [way](const Place& place) { return make_verbs_flow(place, sized(way, place)); };
}

Make many(const VerbsWay& way) {
  return [way](const Place& place) { return make_verbs_rate(place, sized(way, place)); };
}

/// The same through shared memory.
Make local(const Make& make) {
  return [make](const Place& place) {
    Place within = place;
    within.device.local = LocalPath::automatic;
    return make(within);
  };
}

Make held(QpType type, bool used) {
  return [=](const Place& place) { return make_memory_lane(place, type, used); };
}

LaneInfo ucx(std::string_view name, const UcxWay& way) {
  const auto make = [way](const Place& place) { return ucx_lane(sized(way, place))(place); };
  return {name, way.bandwidth ? Kind::bandwidth : Kind::ping_pong, make, ucx_obstacle};
}

LaneInfo fabric(std::string_view name, const FabricWay& way) {
  const auto make = [way](const Place& place) { return fabric_lane(sized(way, place))(place); };
  return {name, Kind::ping_pong, make, fabric_obstacle};
}

std::vector<LaneInfo> make_table() {
  using enum Kind;
  using enum Operation;
  constexpr QpType ud = QpType::ud;
  constexpr QpType rd = QpType::rd;
  constexpr QpType rc = QpType::rc;
  const auto udp_ping = [](bool connected) {
    return [=](const Place& place) {
      return make_udp_ping_pong(place, place.size.value_or(kSmall), connected);
    };
  };
  const auto udp_rate = [](size_t size) {
    return [=](const Place& place) { return make_udp_batches(place, place.size.value_or(size)); };
  };
  const auto tcp_ping = [](size_t size) {
    return [=](const Place& place) { return make_tcp_ping_pong(place, place.size.value_or(size)); };
  };
  const auto udp_trains = [](const Place& place) { return make_udp_trains(place, kSegment); };
  const auto tcp_stream = [](const Place& place) {
    return make_tcp_stream(place, place.size.value_or(kMega));
  };
  return {
      {"udp-ping", latency, udp_ping(false), {}, kLongestDatagram},
      {"ud-send-ping", latency, ping({.transport = ud})},
      {"ud-record-ping", latency, ping({.transport = ud, .operation = write_record})},
      {"udp-connected-ping", latency, udp_ping(true), {}, kLongestDatagram},
      {"ud-read-ping", latency, ping({.transport = ud, .operation = read})},
      {"ud-idle-ping", latency, ping({.transport = ud, .idle_queue_pairs = kManyIdle}),
       [] { return descriptors_obstacle(kManyIdle); }},
      {"rd-send-ping", latency, ping({.transport = rd})},
      {"tcp-ping", latency, tcp_ping(kSmall)},
      {"rc-send-ping", latency, ping({.transport = rc})},
      {"rc-nocrc-send-ping", latency, ping({.transport = rc, .crc = false})},
      {"rc-write-ping", latency, ping({.transport = rc, .operation = write})},
      {"rc-read-ping", latency, ping({.transport = rc, .operation = read})},
      {"rc-idle-write-ping", latency,
       ping({.transport = rc, .operation = write, .waiting = Waiting::idle})},
      {"udp-trains", bandwidth, udp_trains, trains_obstacle},
      {"ud-record", bandwidth, flow({.transport = ud, .operation = write_record, .size = kMega})},
      {"ud-send", bandwidth, flow({.transport = ud, .size = kMega})},
      {"rd-send", bandwidth, flow({.transport = rd, .size = kMega})},
      {"ud-read", bandwidth, flow({.transport = ud, .operation = read, .size = kMega})},
      {"rd-record", bandwidth, flow({.transport = rd, .operation = write_record, .size = kMega})},
      {"tcp-stream", bandwidth, tcp_stream},
      {"rc-nocrc-write", bandwidth,
       flow({.transport = rc, .operation = write, .size = kMega, .crc = false})},
      {"rc-write", bandwidth, flow({.transport = rc, .operation = write, .size = kMega})},
      {"rc-send", bandwidth, flow({.transport = rc, .size = kMega})},
      {"rc-read", bandwidth, flow({.transport = rc, .operation = read, .size = kMega})},
      {"udp-rate-64", rate, udp_rate(kSmall), {}, kLongestDatagram},
      {"ud-rate-64", rate, many({.transport = ud, .size = kSmall, .window = kWindow})},
      {"ud-rate-64-qps", rate,
       many({.transport = ud, .size = kSmall, .window = kWindow, .queue_pairs = kManyActive})},
      {"rd-rate-64", rate, many({.transport = rd, .size = kSmall, .window = kWindow})},
      {"udp-rate-1k", rate, udp_rate(kKilo), {}, kLongestDatagram},
      {"ud-rate-1k", rate, many({.transport = ud, .size = kKilo, .window = kWindow})},
      {"tcp-small-ping", ping_pong, tcp_ping(kSmall)},
      {"rc-nocrc-small-ping", ping_pong, ping({.transport = rc, .crc = false})},
      fabric("fabric-tcp-small", {"tcp", "msg", kSmall}),
      fabric("fabric-rxm-small", {"tcp;ofi_rxm", "rdm", kSmall}),
      {"tcp-large-ping", ping_pong, tcp_ping(kMega)},
      {"rc-nocrc-large-ping", ping_pong, ping({.transport = rc, .size = kMega, .crc = false})},
      fabric("fabric-tcp-large", {"tcp", "msg", kMega}),
      fabric("fabric-rxm-large", {"tcp;ofi_rxm", "rdm", kMega}),
      {"ud-small-ping", ping_pong, ping({.transport = ud})},
      fabric("fabric-udp-small", {"udp", "dgram", kSmall}),
      {"rd-small-ping", ping_pong, ping({.transport = rd})},
      fabric("fabric-rxd-small", {"udp;ofi_rxd", "rdm", kSmall}),
      {"rd-large-ping", ping_pong, ping({.transport = rd, .size = kMega})},
      fabric("fabric-rxd-large", {"udp;ofi_rxd", "rdm", kMega}),
      {"ud-local-ping", latency, local(ping({.transport = ud}))},
      {"ud-local-record-ping", latency, local(ping({.transport = ud, .operation = write_record}))},
      {"rd-local-ping", latency, local(ping({.transport = rd}))},
      {"rc-local-ping", latency, local(ping({.transport = rc}))},
      {"ud-local-record", bandwidth,
       local(flow({.transport = ud, .operation = write_record, .size = kMega}))},
      {"rc-local-write", bandwidth,
       local(flow({.transport = rc, .operation = write, .size = kMega}))},
      {"rc-local-nocrc-write", bandwidth,
       local(flow({.transport = rc, .operation = write, .size = kMega, .crc = false}))},
      {"ud-local-rate-64", rate, local(many({.transport = ud, .size = kSmall, .window = kWindow}))},
      {"rd-local-small-ping", ping_pong, local(ping({.transport = rd}))},
      {"rc-local-small-ping", ping_pong, local(ping({.transport = rc, .crc = false}))},
      fabric("fabric-shm-small", {"shm", "rdm", kSmall}),
      ucx("ucx-posix-small", {.size = kSmall}),
      {"rc-local-large-ping", ping_pong,
       local(ping({.transport = rc, .size = kMega, .crc = false}))},
      fabric("fabric-shm-large", {"shm", "rdm", kMega}),
      ucx("ucx-posix-bandwidth", {.size = kMega, .bandwidth = true}),
      {"ud-idle-memory", Kind::memory, held(ud, false)},
      {"ud-used-memory", Kind::memory, held(ud, true)},
      {"rc-idle-memory", Kind::memory, held(rc, false)},
      {"rc-used-memory", Kind::memory, held(rc, true)},
  };
}

}  // namespace

const std::vector<LaneInfo>& lane_table() {
  static const std::vector<LaneInfo> table = make_table();
  return table;
}

const LaneInfo& info_of_lane(std::string_view name) {
  const auto found = std::ranges::find(lane_table(), name, &LaneInfo::name);
  if (found == lane_table().end()) throw std::logic_error("no lane " + std::string(name));
  return *found;
}

}  // namespace diwarp::tools
