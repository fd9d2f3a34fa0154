// SPDX-License-Identifier: Apache-2.0
#include "endpoint.h"

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <stdexcept>

namespace network {

namespace {

constexpr uint32_t kCompletions = 4096;

diwarp::QueuePairInit init_of(const EndpointSettings& settings, const diwarp::CompletionQueue& cq) {
  diwarp::QueuePairInit init{.type = settings.reliable ? diwarp::QpType::rd : diwarp::QpType::ud,
                             .send_cq = cq,
                             .recv_cq = cq};
  init.capacity.max_send_wr = settings.depth;
  init.capacity.max_recv_wr = settings.depth;
  init.datagram = settings.datagram;
  init.reliable.peer_timeout = std::chrono::milliseconds(settings.peer_timeout_ms);
  if (settings.cubic) init.reliable.congestion_control = diwarp::CongestionControl::cubic;
  init.datagram.record_timeout = std::chrono::milliseconds(settings.record_timeout_ms);
  // Under loss all records of a run stay open until they time out.
  init.datagram.max_open_records = init.datagram.max_open_records_per_source = kCompletions;
  init.datagram.max_validity_maps = kCompletions;
  return init;
}

diwarp::MemoryRegion register_memory(const diwarp::ProtectionDomain& pd,
                                     std::span<std::byte> memory, diwarp::STag stag) {
  using diwarp::Access;
  const Access access = Access::local_write | Access::remote_write | Access::remote_read;
  if (stag == 0) return {pd, memory, access};
  return diwarp::MemoryRegion::with_stag(pd, memory, stag, 0, access);
}

}  // namespace

Endpoint::Endpoint(const EndpointSettings& settings, Contents contents)
    : device(diwarp::Device::open(settings.address)),
      pd(device),
      cq(device, kCompletions),
      qp(pd, init_of(settings, cq)),
      memory(settings.region),
      region(register_memory(pd, memory, settings.stag)) {
  diwarp::test::fill(memory, key_of(contents));
}

void add_options(CLI::App& app, EndpointSettings& settings) {
  diwarp::DatagramOptions& datagram = settings.datagram;
  app.add_option("--address", settings.address, "of this host")->required();
  app.add_option("--port", datagram.port, "0: a free one");
  app.add_flag("--reliable", settings.reliable, "RD instead of UD");
  app.add_flag("--cubic", settings.cubic, "RD: the congestion control");
  app.add_option("--region", settings.region, "bytes of memory");
  app.add_option("--stag-chosen", settings.stag, "STag of this side's memory; its base is then 0");
  app.add_option("--depth", settings.depth, "of the queues");
  app.add_option("--record-timeout", settings.record_timeout_ms, "milliseconds");
  app.add_option("--peer-timeout", settings.peer_timeout_ms, "milliseconds: RD's");
  app.add_option("--segment", datagram.segment, "bytes of a datagram; 0: as the path MTU has it");
  app.add_flag("--jumbo", datagram.jumbo, "let IP fragment datagrams");
  app.add_option("--rate", datagram.max_rate, "bytes a second; 0: no limit");
  app.add_option("--interface", datagram.group.interface, "to send to groups from");
  app.add_option("--hops", datagram.group.hops, "of what is sent to groups");
}

void add_options(CLI::App& app, Remote& remote) {
  app.add_option("--destination", remote.address, "address and port")->required();
  app.add_option("--stag", remote.stag, "of the peer's memory");
  app.add_option("--base", remote.base, "its first tagged offset");
}

void add_options(CLI::App& app, Layout& layout) {
  app.add_option("--sizes", layout.sizes, "bytes of the messages, in turn")->delimiter(',');
  app.add_option("--gap", layout.gap, "bytes between messages in memory");
  app.add_option("--count", layout.count, "messages");
}

Range Layout::message(uint64_t number, size_t region) const {
  uint64_t round = 0, before = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i < number % sizes.size()) before += sizes[i] + gap;
    round += sizes[i] + gap;
  }
  const uint64_t rounds = std::max<uint64_t>(region / std::max<uint64_t>(round, 1), 1);
  return {number / sizes.size() % rounds * round + before, sizes[number % sizes.size()]};
}

void print(const Json& word) {
  std::puts(word.dump().c_str());
  std::fflush(stdout);
}

bool told_to_end() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

Json to_json(const diwarp::ValidityMap& map) {
  Json list = Json::array();
  for (const Range range : map.ranges()) list.push_back({range.offset, range.length});
  return list;
}

void add(diwarp::ValidityMap& region, const diwarp::ValidityMap& message, uint64_t offset) {
  if (!region.merge(message, offset)) throw std::runtime_error("too many ranges to keep");
}

Json counters_of(const diwarp::Device& device) {
  Json values = Json::object();
  for (const diwarp::CounterValue& counter : device.counters()) {
    if (counter.value != 0) values[std::string(counter.name)] = counter.value;
  }
  return values;
}

Json errors_of(diwarp::QueuePair& qp) {
  static constexpr const char* kNames[] = {"protocol",         "port_unreachable",
                                           "host_unreachable", "path_prohibited",
                                           "mtu_black_hole",   "receive_overflow"};
  Json list = Json::array();
  while (const auto error = qp.poll_error())
    list.push_back({{"error", kNames[static_cast<size_t>(error->kind)]},
                    {"peer", error->peer.to_string()},
                    {"text", to_string(*error)}});
  return list;
}

std::vector<diwarp::Sge> sges_of(const diwarp::MemoryRegion& region, const Range& part) {
  if (part.length == 0) return {};
  return {region.sge(part.offset, part.length)};
}

}  // namespace network
