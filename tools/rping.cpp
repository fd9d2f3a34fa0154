// SPDX-License-Identifier: Apache-2.0
// diwarp-rping: the exchange of rdma-core's rping, with it or with itself.
//
// The client sends 16 bytes, big-endian: the address (8), key (4) and size (4) of its source. The
// server Reads that and sends 16 bytes, of no meaning, to go on. The client sends the same about
// its sink, the server Writes there what it Read, and sends 16 bytes again. That is one round; the
// client ends them by disconnecting.
#include <diwarp/verbs.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/cost.h"
#include "common/device_choice.h"
#include "common/failure.h"
#include "common/hints.h"
#include "common/interrupt.h"
#include "common/json_output.h"
#include "common/program.h"
#include "common/socket.h"

namespace diwarp::tools {
namespace {

constexpr const char* kName = "diwarp-rping";
constexpr size_t kMessage = 16;
constexpr Duration kPatience = std::chrono::seconds(10);
constexpr Duration kSlice = std::chrono::milliseconds(100);
constexpr uint32_t kReceives = 4;

struct Options {
  bool server = false;
  bool client = false;
  std::string address = "0.0.0.0";
  DeviceArguments device;
  uint16_t port = 7174;
  uint64_t count = 100;
  uint32_t size = 64;
  bool verify = false;
  std::string json_file;
};

struct Memory {
  uint64_t address = 0;
  STag key = 0;
  uint32_t size = 0;
};

void put(std::span<std::byte> bytes, uint64_t value) {
  for (size_t i = bytes.size(); i-- > 0; value >>= 8) bytes[i] = static_cast<std::byte>(value);
}

uint64_t get(std::span<const std::byte> bytes) {
  uint64_t value = 0;
  for (std::byte byte : bytes) value = value << 8 | std::to_integer<uint64_t>(byte);
  return value;
}

Memory decode(std::span<const std::byte> message) {
  return {get(message.first(8)), static_cast<STag>(get(message.subspan(8, 4))),
          static_cast<uint32_t>(get(message.subspan(12, 4)))};
}

/// The bytes with which rping fills its source: a number and letters that move on by one each
/// round, ended by a zero byte, as the peer may take it for a string.
void fill(std::span<std::byte> bytes, uint64_t round) {
  const std::string head = "rdma-ping-" + std::to_string(round) + ": ";
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto letter = static_cast<char>('A' + (round + i) % 58);
    bytes[i] = static_cast<std::byte>(i < head.size() ? head[i] : letter);
  }
  bytes.back() = std::byte{0};
}

/// One end of the connection, with all it needs.
class End {
 public:
  End(const Device& device, const Options& options)
      : pd_(device),
        cq_(device, 64),
        qp_(pd_, init(cq_)),
        memory_(kMessage * (kReceives + 1) + 2 * size_t{options.size}),
        region_(pd_, memory_, Access::local_write | Access::remote_write | Access::remote_read),
        size_(options.size) {
    for (uint32_t i = 0; i < kReceives; ++i) post_receive(i);
  }

  QueuePair& qp() { return qp_; }
  std::span<std::byte> source() { return bytes(kMessage * (kReceives + 1), size_); }
  std::span<std::byte> sink() { return bytes(kMessage * (kReceives + 1) + size_, size_); }

  void send(const Memory& memory);
  /// Nothing if the peer has ended the connection.
  std::optional<Memory> receive();
  void transfer(WrOpcode opcode, std::span<std::byte> local, const Memory& remote);
  STag key() const { return region_.rkey(); }

 private:
  static QueuePairInit init(const CompletionQueue& cq) {
    QueuePairInit result;
    result.type = QpType::rc;
    result.send_cq = cq;
    result.recv_cq = cq;
    return result;
  }

  std::span<std::byte> bytes(size_t from, size_t length) {
    return std::span(memory_).subspan(from, length);
  }
  Sge sge(std::span<std::byte> part) const {
    return {part.data(), static_cast<uint32_t>(part.size()), region_.lkey()};
  }
  void post(const SendWorkRequest& request);
  void post_receive(uint64_t slot);
  void take(const WorkCompletion& completion);
  std::optional<WorkCompletion> next();

  ProtectionDomain pd_;
  CompletionQueue cq_;
  QueuePair qp_;
  std::vector<std::byte> memory_;
  MemoryRegion region_;
  uint32_t size_;
  std::vector<Memory> received_;
  bool sent_ = false;
  bool ended_ = false;
};

void End::post_receive(uint64_t slot) {
  const Sge where = sge(bytes(kMessage * slot, kMessage));
  // Once the connection has ended there is nothing to receive, and next() tells.
  if (qp_.post_recv({.wr_id = slot, .sges = {&where, 1}})) ended_ = true;
}

void End::take(const WorkCompletion& completion) {
  const bool receive = completion.opcode == WcOpcode::recv;
  if (completion.status != WcStatus::success) {
    if (!receive)
      throw Failure("An operation failed: " + std::string(to_string(completion.status)));
    ended_ = true;
    return;
  }
  if (!receive) {
    sent_ = true;
    return;
  }
  if (completion.byte_count != kMessage) throw Failure("The peer sent a message of another size.");
  received_.push_back(decode(bytes(kMessage * completion.wr_id, kMessage)));
  post_receive(completion.wr_id);
}

std::optional<WorkCompletion> End::next() {
  for (Duration waited{0}; waited < kPatience; waited += kSlice) {
    check_interrupted();
    if (auto completion = cq_.wait(kSlice)) return completion;
  }
  return std::nullopt;
}

void End::post(const SendWorkRequest& request) {
  sent_ = false;
  if (const auto error = qp_.post_send(request)) throw Failure(error.message());
  while (!sent_) {
    const auto completion = next();
    if (!completion) throw Failure("An operation did not complete within 10 seconds.");
    take(*completion);
  }
}

void End::send(const Memory& memory) {
  const auto message = bytes(kMessage * kReceives, kMessage);
  put(message.first(8), memory.address);
  put(message.subspan(8, 4), memory.key);
  put(message.subspan(12, 4), memory.size);
  const Sge what = sge(message);
  post({.sges = {&what, 1}});
}

std::optional<Memory> End::receive() {
  while (received_.empty()) {
    if (ended_) return std::nullopt;
    const auto completion = next();
    if (!completion) throw Failure("The peer sent nothing for 10 seconds.");
    take(*completion);
  }
  const Memory first = received_.front();
  received_.erase(received_.begin());
  return first;
}

void End::transfer(WrOpcode opcode, std::span<std::byte> local, const Memory& remote) {
  const Sge what = sge(local);
  post({.sges = {&what, 1},
        .opcode = opcode,
        .remote = {.stag = remote.key, .offset = remote.address}});
}

void require_message(const std::optional<Memory>& message) {
  if (!message) throw Failure("The peer ended the connection.");
}

void play_client(End& end, const Options& options) {
  for (uint64_t round = 0; round < options.count; ++round) {
    fill(end.source(), round);
    std::fill(end.sink().begin(), end.sink().end(), std::byte{0});
    for (const auto part : {end.source(), end.sink()}) {
      end.send({std::bit_cast<uintptr_t>(part.data()), end.key(), options.size});
      require_message(end.receive());
    }
    if (options.verify && !std::ranges::equal(end.source(), end.sink())) {
      throw Failure("Round " + std::to_string(round) + " came back with other contents.");
    }
  }
  end.qp().disconnect();
}

/// True if the contents are what a client sends in some round: what fill() and rping write.
bool is_ping(std::span<const std::byte> bytes) {
  constexpr std::string_view kHead = "rdma-ping-";
  const size_t length = std::min(kHead.size(), bytes.size() - 1);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, length) == kHead.substr(0, length) && bytes.back() == std::byte{0};
}

/// Returns the rounds that were played.
uint64_t play_server(End& end, const Options& options) {
  for (uint64_t round = 0;; ++round) {
    const auto source = end.receive();
    if (!source) return round;
    if (source->size == 0 || source->size > options.size) {
      throw Failure("The client's size is " + std::to_string(source->size) +
                    ", which is more than --size.");
    }
    const auto data = end.sink().first(source->size);
    end.transfer(WrOpcode::rdma_read, data, *source);
    if (options.verify && !is_ping(data)) {
      throw Failure("Round " + std::to_string(round) + ": the bytes that were read are no ping.");
    }
    end.send({});
    const auto sink = end.receive();
    require_message(sink);
    if (sink->size < source->size) throw Failure("The client's sink is smaller than its source.");
    end.transfer(WrOpcode::rdma_write, data, *sink);
    end.send({});
  }
}

uint64_t run_server(const Options& options, const Device& device) {
  Listener listener(device, options.port);
  // Scripts wait for this line, so it leaves at once. It is no result: those may go to JSON.
  std::fprintf(options.json_file == "-" ? stderr : stdout, "%s: listening at %s\n", kName,
               device.address().with_port(listener.address().port()).to_string().c_str());
  std::fflush(stdout);
  while (true) {
    check_interrupted();
    auto request = listener.get_request(kSlice);
    if (!request) continue;
    End end(device, options);
    request->accept(end.qp());
    const uint64_t rounds = play_server(end, options);
    end.qp().disconnect();
    return rounds;
  }
}

uint64_t run_client(const Options& options, const Device& device, const Address& peer) {
  End end(device, options);
  end.qp().connect(peer);
  play_client(end, options);
  return options.count;
}

/// Where it fails, what this end knows of why is in the message.
uint64_t play(const Options& options, const Device& device, const Address& address) {
  LossWatch watch(device, 0);
  try {
    return options.server ? run_server(options, device) : run_client(options, device, address);
  } catch (const Failure& failure) {
    throw Failure(with_hints(failure.what(), watch.hints()));
  }
}

void run(const Options& options) {
  if (options.server == options.client) throw Failure("One of --server and --client is needed.");
  if (options.size < 16) throw Failure("--size is at least 16.");
  JsonFile json(options.json_file);
  const Address address = Address::parse(options.address).with_port(options.port);
  const Device device =
      options.device.choice().open(options.server ? address : local_address_to(address));
  const uint64_t rounds = play(options, device, address);
  const Json times = {{options.server ? "server" : "client", in_seconds(processor_time())}};
  if (!json.replaces_text())
    std::printf("%llu rounds of %u bytes%s\n", static_cast<unsigned long long>(rounds),
                options.size, options.verify ? ", verified" : "");
  json.write(json_output(kName, {{"rounds", rounds},
                                 {"size", options.size},
                                 {"verified", options.verify},
                                 {"processor", times}}));
  if (rounds < options.count) throw Failure("The client ended before the last round.");
}

void add_options(CLI::App& app, Options& options) {
  app.add_flag("--server", options.server, "listen");
  app.add_flag("--client", options.client, "connect");
  app.add_option("--address", options.address, "to listen on or to connect to");
  app.add_option("--port", options.port, "TCP port (default 7174)");
  app.add_option("--count", options.count, "rounds; a server wants at least so many (default 100)");
  app.add_option("--size", options.size,
                 "bytes of a ping (default 64); a server takes no longer ones");
  app.add_flag("--verify", options.verify, "verify the contents");
  options.device.add_to(app, "on --address, or where the route to it begins");
  add_json_option(app, options.json_file);
}

}  // namespace
}  // namespace diwarp::tools

int main(int argc, char** argv) {
  using namespace diwarp::tools;
  return run_program(kName, [&] {
    CLI::App app{
        "The exchange of rdma-core's rping: the server Reads the client's memory and Writes "
        "it back.",
        kName};
    Options options;
    add_options(app, options);
    if (parse_command_line(app, argc, argv)) run(options);
  });
}
