// SPDX-License-Identifier: Apache-2.0
// Eight busy connections of a device to itself. The device is taken away meanwhile: each id is
// told, each request completes, and once all objects have ended the program goes on in software, on
// the same address. With --ports it waits for the port to go down and come back instead, and
// connects anew. Reports one JSON line; exit status 0 if all went well.
#include <diwarp/verbs.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using namespace diwarp;
using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr uint64_t kConnections = 8;
constexpr uint32_t kSize = 4096;
constexpr uint64_t kReceive = uint64_t{1} << 32;

/// Tells at once, as the objects that end before main() is reached may wait for a device.
void require(bool good, const std::string& what) {
  if (good) return;
  std::fprintf(stderr, "%s\n", what.c_str());
  throw std::runtime_error(what);
}

/// How far the program came.
void tell(const char* what) {
  std::printf("%s\n", what);
  std::fflush(stdout);
}

struct Objects {
  explicit Objects(Device opened)
      : device(std::move(opened)),
        pd(device),
        memory(kSize),
        region(pd, memory, Access::local_write),
        cq(device, 4096),
        events(device),
        listener(device, channel) {}

  Device device;
  ProtectionDomain pd;
  std::vector<std::byte> memory;
  MemoryRegion region;
  CompletionQueue cq;
  EventQueue events;
  CmEventChannel channel;
  CmId listener;
  std::map<uint64_t, QueuePair> qps;  // by the numbers of their ids
  std::map<uint64_t, CmId> ids;
  std::vector<uint64_t> connecting;  // the ids that connected
  uint64_t outstanding = 0;          // requests
  uint64_t answered = 0;             // messages
};

CmEvent next(Objects& all) {
  auto event = all.channel.get_event(kPatience);
  require(event.has_value(), "no event of the connection manager comes");
  return std::move(*event);
}

QueuePair& add(Objects& all, CmId id) {
  const uint64_t number = id.number();
  all.ids.emplace(number, std::move(id));
  const QueuePairInit init{.send_cq = all.cq, .recv_cq = all.cq, .signal_all = true};
  return all.qps.emplace(number, QueuePair(all.pd, init)).first->second;
}

/// One connection: two ids, each with a queue pair.
void connect(Objects& all) {
  CmId first(all.device, all.channel);
  const uint64_t connecting = first.number();
  first.resolve_addr(all.listener.local_address());
  QueuePair& qp = add(all, std::move(first));
  all.connecting.push_back(connecting);
  for (int established = 0; established < 2;) {
    CmEvent event = next(all);
    if (event.type == CmEventType::addr_resolved) all.ids.at(connecting).connect(qp);
    if (event.type == CmEventType::connect_request) {
      const uint64_t number = event.request->number();
      QueuePair& answering = add(all, std::move(*event.request));
      all.ids.at(number).accept(answering);
    }
    established += event.type == CmEventType::established ? 1 : 0;
    require(!event.status, "a connection failed: " + event.message);
  }
}

void post(Objects& all, QueuePair& qp, bool receive) {
  const Sge sge{all.memory.data(), kSize, all.region.lkey()};
  const std::error_code error =
      receive ? qp.post_recv({.wr_id = kReceive, .sges = {sge}}) : qp.post_send({.sges = {sge}});
  if (!error) ++all.outstanding;  // else the connection has ended
}

/// Four messages go to and fro in each connection, and always find a receive.
void begin_traffic(Objects& all) {
  for (auto& [id, qp] : all.qps)
    for (int i = 0; i < 16; ++i) post(all, qp, true);
  for (const uint64_t id : all.connecting)
    for (int i = 0; i < 4; ++i) post(all, all.qps.at(id), false);
}

void answer(Objects& all, uint32_t qp_number) {
  ++all.answered;
  for (auto& [id, qp] : all.qps) {
    if (qp.number() != qp_number) continue;
    post(all, qp, true);
    post(all, qp, false);
  }
}

/// Takes what has completed: once, as traffic never ends by itself. Returns a status that is none
/// of success, if there was one.
WcStatus drain(Objects& all) {
  std::array<WorkCompletion, 64> batch;
  WcStatus failed = WcStatus::success;
  const size_t count = all.cq.poll(batch, 1ms);
  all.outstanding -= count;
  for (const WorkCompletion& completion : std::span(batch).first(count)) {
    if (completion.status != WcStatus::success)
      failed = completion.status;
    else if (completion.wr_id == kReceive)
      answer(all, completion.qp_number);
  }
  return failed;
}

/// Until so many messages have been answered.
void be_busy(Objects& all, uint64_t messages) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (all.answered < messages) {
    require(drain(all) == WcStatus::success, "a request failed");
    require(std::chrono::steady_clock::now() < deadline, "the messages do not go on");
  }
}

/// The same until an event of the connection manager comes; requests may fail before.
CmEvent be_busy(Objects& all, bool& failed) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (;;) {
    failed = drain(all) != WcStatus::success || failed;
    if (auto event = all.channel.get_event(Duration::zero())) return std::move(*event);
    require(std::chrono::steady_clock::now() < deadline, "no event comes");
  }
}

void take_leave(Objects& all) {
  std::set<uint64_t> told;
  bool failed = false;
  CmEvent event = be_busy(all, failed);
  for (;;) {
    if (event.type == CmEventType::device_removal) told.insert(event.id);
    if (told.size() == all.ids.size() + 1) break;  // the listener, too
    event = next(all);
  }
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (all.outstanding != 0) {
    failed = drain(all) != WcStatus::success || failed;
    require(std::chrono::steady_clock::now() < deadline,
            std::to_string(all.outstanding) + " requests do not complete");
  }
  require(failed, "no request failed");
}

/// Waits for this event, and passes over those of connections, which a driver may end.
void expect_event(Objects& all, AsyncEventType wanted) {
  for (;;) {
    const auto event = all.events.get_event(kPatience);
    require(event.has_value(), "no event comes: " + std::string(to_string(wanted)));
    if (event->type == wanted) return;
  }
}

/// A connection with traffic, on a new device.
void connect_anew(Device device) {
  Objects all(std::move(device));
  all.listener.listen();
  connect(all);
  begin_traffic(all);
  be_busy(all, 20);
}

void run(const std::string& name, bool ports) {
  auto all = std::make_unique<Objects>(Device::open(name));
  const Address address = all->device.address();
  all->listener.listen();
  tell("listening");
  for (uint64_t i = 0; i < kConnections; ++i) connect(*all);
  tell("connected");
  begin_traffic(*all);
  be_busy(*all, 20 * kConnections);
  tell("busy");
  if (ports) {
    expect_event(*all, AsyncEventType::port_error);
    expect_event(*all, AsyncEventType::port_active);
    all.reset();
    connect_anew(Device::open(name));
  } else {
    take_leave(*all);
    all.reset();
    Device software = Device::open(address, {.hardware = Hardware::prefer});
    require(has(software.query().capabilities, Capability::adopted_streams),
            "it is no software device");
    connect_anew(std::move(software));
  }
  std::printf("{\"ok\": true}\n");
}

}  // namespace

int main(int argc, char** argv) {
  std::string device;
  bool ports = false;
  CLI::App app("Busy connections of a device that goes away");
  app.add_option("--device", device, "its name")->required();
  app.add_flag("--ports", ports, "the port goes down and comes back instead");
  CLI11_PARSE(app, argc, argv);
  try {
    run(device, ports);
    return 0;
  } catch (const std::exception& error) {
    std::printf("{\"ok\": false, \"error\": \"%s\"}\n", error.what());
    return 1;
  }
}
