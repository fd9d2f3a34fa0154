// SPDX-License-Identifier: Apache-2.0
// diwarp-memory: what clients cost their server in memory.
#include <dirent.h>
#include <diwarp/verbs.h>
#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "common/child.h"
#include "common/device_choice.h"
#include "common/failure.h"
#include "common/interrupt.h"
#include "common/json_output.h"
#include "common/operation.h"
#include "common/program.h"
#include "compare/verbs_lanes.h"

namespace diwarp::tools {
namespace {

using std::chrono::seconds;

constexpr const char* kName = "diwarp-memory";
constexpr const char* kDescription =
    "Measures what so many clients cost their server: of UD one queue pair serves all, of RC "
    "each has a connection and a queue pair of its own. The clients' queue pairs are in another "
    "process of this host. Tells by how much the server's memory grew, when they are connected "
    "(idle), and when each has sent a message (used): what it allocated, what is resident, the "
    "sockets it has open, and the kernel's slab, which is the whole host's: that of both ends.";

constexpr uint32_t kMostClients = 20'000;
constexpr size_t kMessage = 64;
constexpr uint32_t kReceives = 1024;  // of the server's queue pair that serves all
constexpr QueuePairCapacity kCapacity = {.max_send_wr = 4, .max_recv_wr = 4};
constexpr seconds kPatience{30};
constexpr auto kSlice = std::chrono::milliseconds(100);  // until the user's interrupt is seen
constexpr auto kQuiet = std::chrono::milliseconds(500);  // without a message: the rest is lost

/// "VmRSS:   1234 kB" of such a file, in bytes.
double kilobytes_in(const char* file, const std::string& name) {
  std::ifstream input(file);
  for (std::string line; std::getline(input, line);)
    if (line.starts_with(name + ":")) return 1024 * std::stod(line.substr(name.size() + 1));
  return 0;
}

double open_descriptors() {
  double count = 0;
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count;
}

struct Held {
  double allocated = 0;
  double resident = 0;
  double descriptors = 0;
  double kernel = 0;
};

Held look() {
  const struct mallinfo2 info = ::mallinfo2();
  return {.allocated = static_cast<double>(info.uordblks + info.hblkhd),
          .resident = kilobytes_in("/proc/self/status", "VmRSS"),
          .descriptors = open_descriptors(),
          .kernel = kilobytes_in("/proc/meminfo", "Slab")};
}

Json growth(const Held& now, const Held& before) {
  return {{"allocated_bytes", now.allocated - before.allocated},
          {"resident_bytes", now.resident - before.resident},
          {"descriptors", now.descriptors - before.descriptors},
          {"kernel_bytes", now.kernel - before.kernel}};
}

/// What `look` returns, which waits for so long, as soon as it is something; nothing after
/// `patience`. Throws Interrupted.
template <class Look>
auto wait_in_slices(Duration patience, Look&& look) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    check_interrupted();
    auto found = look(kSlice);
    if (found || std::chrono::steady_clock::now() >= deadline) return found;
  }
}

/// Words between the two processes, a line each. Both ends are made before the fork.
class Wire {
 public:
  Wire() {
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends_.data()) != 0)
      throw Failure("No pair of sockets can be had.");
  }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  ~Wire() {
    for (const int end : ends_) ::close(end);
  }

  void say(size_t end, const std::string& word) {
    if (::send(ends_[end], word.data(), word.size(), MSG_NOSIGNAL) < 0)
      throw Failure("The process of the other end is gone.");
  }
  /// Nothing if the other end says nothing for long.
  std::string hear(size_t end) {
    const bool spoken = wait_in_slices(kPatience, [&](std::chrono::milliseconds slice) {
      pollfd one{.fd = ends_[end], .events = POLLIN, .revents = 0};
      return ::poll(&one, 1, static_cast<int>(slice.count())) > 0;
    });
    if (!spoken) return {};
    std::array<char, 128> text{};
    const ssize_t length = ::recv(ends_[end], text.data(), text.size(), 0);
    return {text.data(), length > 0 ? static_cast<size_t>(length) : 0};
  }

 private:
  std::array<int, 2> ends_{};
};

constexpr size_t kServer = 0;
constexpr size_t kClients = 1;

QueuePairInit shape(QpType type, CompletionQueue& cq, const QueuePairCapacity& capacity) {
  return {.type = type, .send_cq = cq, .recv_cq = cq, .capacity = capacity};
}

struct Settings {
  DeviceChoice device;
  Address address;
  QpType type = QpType::ud;
  uint32_t clients = 0;
};

/// The clients, all in one process: connects them, and has each send one message, when told.
int run_clients(Wire& wire, const Settings& settings) {
  const auto& [choice, address, type, count] = settings;
  capture_at_the_first_end();
  const Address server = Address::parse(wire.hear(kClients));
  Device device = choice.open(address);
  ProtectionDomain pd(device);
  CompletionQueue cq(device, 64);
  std::vector<QueuePair> all;
  all.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    all.emplace_back(pd, shape(type, cq, kCapacity));
    if (type == QpType::rc) all.back().connect(server);
  }
  wire.say(kClients, "connected");
  std::array<std::byte, kMessage> message{};
  MemoryRegion region(pd, message.data(), message.size());
  wire.hear(kClients);
  for (QueuePair& client : all) {
    const Sge bytes = region.sge();
    SendWorkRequest request{.sges = {&bytes, 1}};
    if (type != QpType::rc) request.destination = server;
    if (client.post_send(request) || !cq.wait(kPatience)) return 1;
  }
  wire.say(kClients, "sent");
  wire.hear(kClients);
  return 0;
}

/// The server's side of one run.
class Server {
 public:
  explicit Server(const Settings& settings)
      : device_(settings.device.open(settings.address)),
        pd_(device_),
        cq_(device_, kReceives * 2),
        region_(pd_, memory_.data(), memory_.size(), Access::local_write),
        type_(settings.type),
        count_(settings.clients) {
    all_.reserve(count_);
    if (type_ == QpType::rc) {
      listener_.emplace(device_, uint16_t{0});
      return;
    }
    add_queue_pair({.max_send_wr = 4, .max_recv_wr = kReceives});
    for (uint32_t i = 0; i < kReceives; ++i) post_receive(all_.front());
  }

  std::string address() {
    return (listener_ ? listener_->address() : all_.front().address()).to_string();
  }

  void accept_all() {
    for (uint32_t i = 0; listener_ && i < count_; ++i) {
      auto request =
          wait_in_slices(kPatience, [&](Duration slice) { return listener_->get_request(slice); });
      if (!request) throw Failure("A client did not connect.");
      add_queue_pair(kCapacity);
      post_receive(all_.back());
      request->accept(all_.back());
    }
  }

  /// How many messages come until all did, or none for a while.
  uint64_t receive_all() {
    uint64_t received = 0;
    while (received < count_) {
      const auto done = wait_in_slices(kQuiet + (received == 0 ? Duration(kPatience) : Duration{0}),
                                       [&](Duration slice) { return cq_.wait(slice); });
      if (!done) break;
      if (done->status != WcStatus::success) throw Failure("A message was not received.");
      ++received;
      if (!listener_) post_receive(all_.front());
    }
    return received;
  }

 private:
  void add_queue_pair(const QueuePairCapacity& capacity) {
    all_.emplace_back(pd_, shape(type_, cq_, capacity));
  }
  void post_receive(QueuePair& to) {
    const Sge room = region_.sge();
    if (to.post_recv({.sges = {&room, 1}})) throw Failure("A receive could not be posted.");
  }

  Device device_;
  ProtectionDomain pd_;
  CompletionQueue cq_;
  std::array<std::byte, kMessage> memory_{};
  MemoryRegion region_;
  std::optional<Listener> listener_;
  std::vector<QueuePair> all_;
  QpType type_;
  uint32_t count_;
};

Json measure(const Settings& settings) {
  Wire wire;
  Child clients([&] { return run_clients(wire, settings); });
  Server server(settings);
  const Held before = look();
  wire.say(kServer, server.address());
  server.accept_all();
  if (wire.hear(kServer) != "connected") throw Failure("The clients could not be made.");
  const Held idle = look();
  wire.say(kServer, "send");
  const uint64_t received = server.receive_all();
  const Held used = look();
  wire.say(kServer, "end");
  return {{"transport", to_string(settings.type)},
          {"clients", settings.clients},
          {"received", received},
          {"idle", growth(idle, before)},
          {"used", growth(used, before)}};
}

void print(const Json& row) {
  std::printf("%s, %s clients\n", row["transport"].get<std::string>().c_str(),
              row["clients"].dump().c_str());
  std::printf("%-8s%16s%14s%14s%14s%10s\n", "", "allocated KiB", "resident KiB", "descriptors",
              "kernel KiB", "messages");
  for (const char* when : {"idle", "used"}) {
    const Json& held = row[when];
    const std::string messages = when == std::string("used") ? row["received"].dump() : "-";
    std::printf("%-8s%16.1f%14.1f%14.0f%14.1f%10s\n", when,
                held["allocated_bytes"].get<double>() / 1024,
                held["resident_bytes"].get<double>() / 1024, held["descriptors"].get<double>(),
                held["kernel_bytes"].get<double>() / 1024, messages.c_str());
  }
}

/// UD may lose some messages. Where fewer came, the server's memory is not what all would cost.
void check_received(const Settings& settings, uint64_t received) {
  const bool enough = settings.type == QpType::ud ? received > 0 : received == settings.clients;
  if (!enough)
    throw Failure("Of " + std::to_string(settings.clients) + " messages only " +
                  std::to_string(received) + " came, so this is not what all clients cost.");
}

void run(int argc, char** argv) {
  CLI::App app(kDescription, kName);
  Settings settings{.device = {}, .address = {}, .clients = 100};
  std::string transport = "ud", address = "127.0.0.1", json_file;
  DeviceArguments device;
  app.add_option("--transport", transport, "The transport")
      ->type_name("ud|rc|rd")
      ->capture_default_str();
  app.add_option("--clients", settings.clients, "How many")->type_name("N")->capture_default_str();
  app.add_option("--address", address, "Of this host, for both ends")
      ->type_name("ADDR")
      ->capture_default_str();
  device.add_to(app, "software on --address");
  add_json_option(app, json_file);
  if (!parse_command_line(app, argc, argv)) return;
  if (settings.clients < 1 || settings.clients > kMostClients)
    throw Failure("--clients needs a number from 1 to " + std::to_string(kMostClients) + ".");
  settings.type = parse_transport(transport);
  settings.device = device.choice();
  settings.address = Address::parse(address);
  raise_descriptor_limit();
  const std::string obstacle = descriptors_obstacle(settings.clients);
  if (!obstacle.empty()) throw Failure("The clients cannot be made: " + obstacle);
  JsonFile json(json_file);
  const Json row = measure(settings);
  if (!json.replaces_text()) print(row);
  json.write(json_output(kName, row));
  check_received(settings, row["received"].get<uint64_t>());
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  return diwarp::tools::run_program(diwarp::tools::kName, [&] { diwarp::tools::run(argc, argv); });
}
