// SPDX-License-Identifier: Apache-2.0
/// One end of an RC connection between network namespaces. It connects or listens, then does what
/// the lines of its input say, and prints JSON, a line each.
#include <arpa/inet.h>
#include <diwarp/connection_manager.h>
#include <diwarp/verbs.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::json;
using Seconds = std::chrono::duration<double>;
using namespace std::chrono_literals;

constexpr auto kPatience = 30s;
constexpr uint32_t kDepth = 64;
constexpr uint32_t kMessage = 64 << 10;

struct Settings {
  std::string address;
  std::string peer;           ///< empty: listens
  std::string how = "verbs";  ///< verbs, cm or descriptor
  bool uring = false;
  uint32_t receives = 0;
  double keep_alive = 60;    ///< seconds
  double user_timeout = 20;  ///< seconds
  bool of_connection = false;
};

/// Where a peer's memory is, as private data of a reply have it.
struct Remote {
  uint64_t base = 0;
  diwarp::STag stag = 0;
};

void print(const Json& word) {
  std::puts(word.dump().c_str());
  std::fflush(stdout);
}

diwarp::Duration to_duration(double seconds) {
  return std::chrono::duration_cast<diwarp::Duration>(Seconds(seconds));
}

diwarp::StreamOptions stream_options(const Settings& settings) {
  if (settings.of_connection) return {};
  return {.receive_wait = 1h,
          .keep_alive = to_duration(settings.keep_alive),
          .user_timeout = to_duration(settings.user_timeout)};
}

/// A plain TCP socket, as a program has one before MPA starts on it.
class Plain {
 public:
  explicit Plain(const diwarp::Address& local) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_storage name;
    const socklen_t length = local.to_sockaddr(name);
    require(::bind(fd_, reinterpret_cast<sockaddr*>(&name), length) == 0);
  }
  diwarp::Address listen() {
    require(::listen(fd_, 1) == 0);
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    require(::getsockname(fd_, reinterpret_cast<sockaddr*>(&name), &length) == 0);
    return diwarp::Address::from_sockaddr(reinterpret_cast<sockaddr*>(&name));
  }
  int accept() {
    const int accepted = ::accept(fd_, nullptr, nullptr);
    require(accepted >= 0);
    return accepted;
  }
  int connect(const diwarp::Address& peer) {
    sockaddr_storage name;
    const socklen_t length = peer.to_sockaddr(name);
    require(::connect(fd_, reinterpret_cast<sockaddr*>(&name), length) == 0);
    return fd_;
  }

 private:
  static void require(bool done) {
    if (!done) throw std::runtime_error(std::strerror(errno));
  }
  int fd_;
};

class End {
 public:
  explicit End(const Settings& settings)
      : settings_(settings),
        device_(diwarp::Device::open(
            settings.address,
            {.io = settings.uring ? diwarp::IoBackend::uring : diwarp::IoBackend::syscall})),
        events_(device_),
        pd_(device_),
        cq_(device_, 4 * kDepth),
        qp_(pd_, {.send_cq = cq_,
                  .recv_cq = cq_,
                  .capacity = {.max_send_wr = kDepth, .max_recv_wr = kDepth},
                  .stream = stream_options(settings)}),
        memory_(kMessage),
        region_(pd_, std::span(memory_), diwarp::Access::local_write | diwarp::Access::remote_read),
        id_(device_, channel_) {
    const diwarp::Sge sge = region_.sge();
    for (uint32_t i = 0; i < settings.receives; ++i) check(qp_.post_recv({.sges = {&sge, 1}}));
  }

  void establish() {
    settings_.peer.empty() ? respond() : initiate();
    const diwarp::QueuePairAttributes attributes = qp_.query();
    print({{"kind", "connected"},
           {"keep_alive", Seconds(attributes.keep_alive).count()},
           {"user_timeout", Seconds(attributes.user_timeout).count()},
           {"uring", device_.query().io == diwarp::IoBackend::uring}});
  }

  /// One line of the input.
  void obey(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    double seconds = 0;
    words >> verb >> seconds;
    begun_ = std::chrono::steady_clock::now();
    if (verb == "wait") return await_end(seconds);
    size_t posted = 0;
    if (verb == "send") posted = post(diwarp::WrOpcode::send, 8) ? 1 : 0;
    if (verb == "read") posted = post(diwarp::WrOpcode::rdma_read, 8) ? 1 : 0;
    if (verb == "flood")
      while (post(diwarp::WrOpcode::send, kMessage)) ++posted;
    if (verb == "complete") await_completions(static_cast<size_t>(seconds));
    print({{"kind", verb}, {"posted", posted}});
  }

 private:
  using Statuses = std::map<std::string, int>;

  static void check(std::error_code code) {
    if (code) throw std::system_error(code);
  }

  template <class Options>
  Options options() const {
    Options wanted;
    if (!settings_.of_connection) return wanted;
    wanted.keep_alive = to_duration(settings_.keep_alive);
    wanted.user_timeout = to_duration(settings_.user_timeout);
    return wanted;
  }

  void initiate() {
    const diwarp::Address peer = diwarp::Address::parse(settings_.peer);
    const auto wanted = options<diwarp::ConnectOptions>();
    if (settings_.how == "descriptor")
      return learn(qp_.connect_on(Plain(device_.address()).connect(peer), wanted));
    if (settings_.how != "cm") return learn(qp_.connect(peer, wanted));
    id_.resolve_addr(peer);
    next(diwarp::CmEventType::addr_resolved);
    id_.connect(qp_, wanted);
    learn(next(diwarp::CmEventType::established).private_data);
  }

  void respond() {
    auto wanted = options<diwarp::AcceptOptions>();
    const Remote own{region_.base(), region_.rkey()};
    wanted.private_data = std::as_bytes(std::span(&own, 1));
    if (settings_.how == "descriptor") {
      Plain plain(device_.address());
      tell(plain.listen());
      qp_.accept_on(plain.accept(), wanted, kPatience);
    } else if (settings_.how == "cm") {
      id_.bind(device_.address());
      id_.listen();
      tell(id_.local_address());
      accepted_ = next(diwarp::CmEventType::connect_request).request;
      accepted_->accept(qp_, wanted);
      next(diwarp::CmEventType::established);
    } else {
      diwarp::Listener listener(device_, 0);
      tell(listener.address());
      listener.get_request(kPatience).value().accept(qp_, wanted);
    }
  }

  static void tell(const diwarp::Address& address) {
    print({{"kind", "listening"}, {"address", address.to_string()}});
  }

  diwarp::CmEvent next(diwarp::CmEventType type) {
    std::optional<diwarp::CmEvent> event = channel_.get_event(kPatience);
    if (!event || event->type != type)
      throw std::runtime_error(event ? std::string(to_string(event->type)) : "no event");
    return std::move(*event);
  }

  void learn(const std::vector<std::byte>& private_data) {
    if (private_data.size() == sizeof peer_) std::memcpy(&peer_, private_data.data(), sizeof peer_);
  }

  /// False where the queue is full.
  bool post(diwarp::WrOpcode opcode, uint32_t length) {
    const diwarp::Sge sge = region_.sge(0, length);
    const std::error_code code =
        qp_.post_send({.sges = {&sge, 1}, .opcode = opcode, .remote = {peer_.stag, peer_.base}});
    return !code;
  }

  void note_completions(Statuses& statuses) {
    diwarp::WorkCompletion completions[16];
    while (const size_t count = cq_.poll(completions))
      for (size_t i = 0; i < count; ++i) ++statuses[std::string(to_string(completions[i].status))];
  }

  void await_completions(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const auto completion = cq_.wait(kPatience);
      if (!completion || completion->status != diwarp::WcStatus::success)
        throw std::runtime_error("no completion, or not of success");
    }
  }

  /// The event that ended the connection within so many seconds, if any.
  void await_end(double seconds) {
    const std::optional<diwarp::AsyncEvent> event = events_.get_event(to_duration(seconds));
    Json word{{"kind", "waited"},
              {"state", std::string(to_string(qp_.state()))},
              {"seconds", Seconds(std::chrono::steady_clock::now() - begun_).count()},
              {"timeouts", device_.counter("rc_peer_timeouts")}};
    if (event) {
      word["event"] = std::string(to_string(event->type));
      word["timed_out"] = event->status == diwarp::Errc::timed_out;
    }
    if (event && settings_.how == "cm") {
      const diwarp::CmEvent told = next(diwarp::CmEventType::disconnected);
      word["told_by_cm"] = told.status == diwarp::Errc::timed_out;
    }
    Statuses statuses;
    note_completions(statuses);
    word["statuses"] = statuses;
    print(word);
  }

  const Settings settings_;
  diwarp::Device device_;
  diwarp::EventQueue events_;
  diwarp::ProtectionDomain pd_;
  diwarp::CompletionQueue cq_;
  diwarp::QueuePair qp_;
  std::vector<std::byte> memory_;
  diwarp::MemoryRegion region_;
  diwarp::CmEventChannel channel_;
  diwarp::CmId id_;
  std::optional<diwarp::CmId> accepted_;
  Remote peer_;
  std::chrono::steady_clock::time_point begun_;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app("One end of an RC connection");
  app.add_option("--address", settings.address)->required();
  app.add_option("--connect", settings.peer, "address and port; without: listens");
  app.add_option("--how", settings.how, "verbs, cm or descriptor");
  app.add_flag("--uring", settings.uring);
  app.add_option("--receives", settings.receives, "posted before the connection");
  app.add_option("--keep-alive", settings.keep_alive, "seconds");
  app.add_option("--user-timeout", settings.user_timeout, "seconds");
  app.add_flag("--of-connection", settings.of_connection, "both are the connection's own");
  try {
    CLI11_PARSE(app, argc, argv);
    End end(settings);
    end.establish();
    for (std::string line; std::getline(std::cin, line);) end.obey(line);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "network_stream: %s\n", error.what());
    return 1;
  }
  return 0;
}
