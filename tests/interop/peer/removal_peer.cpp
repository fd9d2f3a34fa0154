// SPDX-License-Identifier: Apache-2.0
// Eight busy connections of a device to itself. The device is taken away meanwhile: each id is
// told, each request completes, and once all objects have ended the program goes on in software, on
// the same address. With --ports it waits for the port to go down and come back instead, and
// connects anew. With --serve or --connect there is one connection, to another process, that ends
// meanwhile. Reports one JSON line; exit status 0 if all went well.
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
constexpr uint64_t kBusy = 20;  // messages that each connection has had answered when it is busy
constexpr uint16_t kPort = 7190;

struct Options {
  std::string device;
  bool ports = false;
  bool serve = false;
  std::string connect;      // to this address
  double user_timeout = 0;  // seconds; 0: the default
};

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
  uint64_t busy_at = kBusy;          // messages, when it tells that it is busy
  uint64_t extra = 8;                // messages that may be sent into silence
  StreamOptions stream;
};

CmEvent next(Objects& all) {
  auto event = all.channel.get_event(kPatience);
  require(event.has_value(), "no event of the connection manager comes");
  return std::move(*event);
}

void post(Objects& all, QueuePair& qp, bool receive) {
  const Sge sge{all.memory.data(), kSize, all.region.lkey()};
  const std::error_code error =
      receive ? qp.post_recv({.wr_id = kReceive, .sges = {sge}}) : qp.post_send({.sges = {sge}});
  if (!error) ++all.outstanding;  // else the connection has ended
}

/// A queue pair for the id. Its receives are there before the peer may send.
QueuePair& add(Objects& all, CmId id) {
  const uint64_t number = id.number();
  all.ids.emplace(number, std::move(id));
  const QueuePairInit init{
      .send_cq = all.cq, .recv_cq = all.cq, .signal_all = true, .stream = all.stream};
  QueuePair& qp = all.qps.emplace(number, QueuePair(all.pd, init)).first->second;
  for (int i = 0; i < 16; ++i) post(all, qp, true);
  return qp;
}

void dial(Objects& all, const Address& peer) {
  CmId id(all.device, all.channel);
  all.connecting.push_back(id.number());
  id.resolve_addr(peer);
  add(all, std::move(id));
}

/// Until so many ids have been told that they are connected.
void establish(Objects& all, int wanted) {
  for (int established = 0; established < wanted;) {
    CmEvent event = next(all);
    require(!event.status, "a connection failed: " + event.message);
    if (event.type == CmEventType::addr_resolved)
      all.ids.at(event.id).connect(all.qps.at(event.id));
    if (event.type == CmEventType::connect_request) {
      const uint64_t number = event.request->number();
      QueuePair& answering = add(all, std::move(*event.request));
      all.ids.at(number).accept(answering);
    }
    established += event.type == CmEventType::established ? 1 : 0;
  }
}

/// One connection: two ids, each with a queue pair.
void connect(Objects& all) {
  dial(all, all.listener.local_address());
  establish(all, 2);
}

/// Four messages go to and fro in each connection, and always find a receive.
void begin_traffic(Objects& all) {
  for (const uint64_t id : all.connecting)
    for (int i = 0; i < 4; ++i) post(all, all.qps.at(id), false);
}

void answer(Objects& all, uint32_t qp_number) {
  if (++all.answered == all.busy_at) tell("busy");
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

/// The messages may all be at the other end when that falls silent. Then the side that connected
/// sends a few more, so that something is outstanding.
void send_into_silence(Objects& all, std::chrono::steady_clock::time_point heard) {
  if (all.extra == 0 || std::chrono::steady_clock::now() - heard < 1s) return;
  --all.extra;
  for (const uint64_t id : all.connecting) post(all, all.qps.at(id), false);
}

/// The same until an event of the connection manager comes; requests may fail before.
CmEvent be_busy(Objects& all, bool& failed) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  auto heard = std::chrono::steady_clock::now();
  for (uint64_t answered = all.answered;; answered = all.answered) {
    failed = drain(all) != WcStatus::success || failed;
    if (all.answered != answered) heard = std::chrono::steady_clock::now();
    send_into_silence(all, heard);
    if (auto event = all.channel.get_event(Duration::zero())) return std::move(*event);
    require(std::chrono::steady_clock::now() < deadline, "no event comes");
  }
}

/// All requests complete, and one of them with an error, now or before.
void complete_all(Objects& all, bool failed) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (all.outstanding != 0) {
    failed = drain(all) != WcStatus::success || failed;
    require(std::chrono::steady_clock::now() < deadline,
            std::to_string(all.outstanding) + " requests do not complete");
  }
  require(failed, "no request failed");
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
  complete_all(all, failed);
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
  be_busy(all, kBusy);
}

/// One connection to another process, until it ends. Returns what is told of its end.
std::string see_end(const Options& options) {
  Objects all(Device::open(options.device));
  if (options.user_timeout != 0)
    all.stream.user_timeout =
        std::chrono::milliseconds(static_cast<int64_t>(options.user_timeout * 1000));
  if (options.serve) {
    all.listener.bind(all.device.address().with_port(kPort));
    all.listener.listen();
    tell("listening");
  } else {
    dial(all, Address::parse(options.connect).with_port(kPort));
  }
  establish(all, 1);
  begin_traffic(all);
  bool failed = false;
  const CmEvent event = be_busy(all, failed);
  require(event.type == CmEventType::disconnected,
          "another event than that of the end: " + std::string(to_string(event.type)));
  complete_all(all, failed);
  tell("ended");
  if (options.ports) {
    expect_event(all, AsyncEventType::port_error);
    expect_event(all, AsyncEventType::port_active);
  }
  return event.status.message();
}

void see_removal(const std::string& name, bool ports) {
  auto all = std::make_unique<Objects>(Device::open(name));
  all->busy_at = kBusy * kConnections;
  const Address address = all->device.address();
  all->listener.listen();
  tell("listening");
  for (uint64_t i = 0; i < kConnections; ++i) connect(*all);
  tell("connected");
  begin_traffic(*all);
  be_busy(*all, all->busy_at);
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
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Busy connections of a device that goes away");
  app.add_option("--device", options.device, "its name")->required();
  app.add_flag("--ports", options.ports, "the port goes down and comes back");
  app.add_flag("--serve", options.serve, "a connection from another process, which ends");
  app.add_option("--connect", options.connect, "one to this address, which ends");
  app.add_option("--user-timeout", options.user_timeout, "of it, in seconds (software)");
  CLI11_PARSE(app, argc, argv);
  try {
    std::string status;
    if (options.serve || !options.connect.empty())
      status = see_end(options);
    else
      see_removal(options.device, options.ports);
    std::printf("{\"ok\": true, \"status\": \"%s\"}\n", status.c_str());
    return 0;
  } catch (const std::exception& error) {
    std::printf("{\"ok\": false, \"error\": \"%s\"}\n", error.what());
    return 1;
  }
}
