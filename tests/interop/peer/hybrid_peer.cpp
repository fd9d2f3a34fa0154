// SPDX-License-Identifier: Apache-2.0
// One program on one address with one completion queue and one channel: a reliable connection, and
// queue pairs of types ud and rd, all at once. The server answers each message with its bytes and
// sleeps between them. At the end its memory is written by both ways under one STag, and the STag
// is invalidated. Reports one JSON line; exit status 0 if all went well.
#include <diwarp/verbs.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace diwarp;
using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr Duration kUdPatience = 500ms;  // a datagram may be lost
constexpr size_t kSlot = 2048;           // bytes
constexpr uint32_t kDepth = 32;          // receives of each queue pair
constexpr size_t kPart = 1000;           // bytes that each way writes
constexpr size_t kRecordAt = 4096;

struct Options {
  std::string device = "127.0.0.1";
  std::string peer;  // empty: server
  uint16_t port = 7180;
  uint32_t rounds = 10'000;
  std::string invalidate_by = "rd";
};

void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

void require(std::error_code error, const char* what) {
  require(!error, std::string(what) + ": " + error.message());
}

/// The queue pairs, and what a receive's wr_id says of its own.
enum Way : uint64_t { kRc, kUd, kRd, kWays };
constexpr std::array<std::string_view, kWays> kNames = {"rc", "ud", "rd"};

/// What a peer needs of the other, in private data.
struct Greeting {
  uint16_t ud_port;
  uint16_t rd_port;
  uint32_t rkey;
  uint64_t base;
};

/// The messages that are not of the rounds: their numbers are beyond those of rounds.
enum Step : uint64_t { kWritten = uint64_t{1} << 32, kInvalidated, kOver };

std::byte pattern(uint64_t number, size_t i) { return static_cast<std::byte>(number * 31 + i); }

size_t size_of(uint64_t number) { return sizeof number + number * 37 % 1000; }

void write_message(uint64_t number, std::byte* to) {
  std::memcpy(to, &number, sizeof number);
  for (size_t i = sizeof number; i < size_of(number); ++i) to[i] = pattern(number, i);
}

/// The number of a message, whose bytes are checked.
uint64_t read_message(const std::byte* from, size_t size) {
  uint64_t number = 0;
  require(size >= sizeof number, "a message is too short");
  std::memcpy(&number, from, sizeof number);
  require(size == size_of(number), "a message has another size");
  for (size_t i = sizeof number; i < size; ++i)
    require(from[i] == pattern(number, i), "a message has other bytes");
  return number;
}

struct Message {
  Way way;
  uint64_t number;
  WorkCompletion completion;
};

class End {
 public:
  explicit End(const std::string& device)
      : device_(Device::open(device)),
        pd_(device_),
        memory_((kWays * (kDepth + 1)) * kSlot),
        region_(pd_, memory_, Access::local_write),
        target_(3 * kRecordAt),
        target_region_(pd_, target_,
                       Access::local_write | Access::remote_write | Access::remote_read |
                           Access::remote_invalidate),
        channel_(device_),
        cq_(device_, 1024, channel_),
        qps_{make(QpType::rc), make(QpType::ud), make(QpType::rd)} {
    for (size_t i = 0; i < target_.size(); ++i) target_[i] = pattern(7, i);
    for (const Way way : {kRc, kUd, kRd})
      for (uint64_t slot = 0; slot < kDepth; ++slot) post_recv(way, slot);
  }

  Device& device() { return device_; }
  QueuePair& qp(Way way) { return qps_[way]; }
  std::vector<std::byte>& target() { return target_; }
  MemoryRegion& region() { return target_region_; }
  uint64_t wakes() const { return wakes_; }
  /// Write-Records that came.
  uint64_t records() const { return records_; }

  Greeting greeting() const {
    return {qps_[kUd].address().port(), qps_[kRd].address().port(), target_region_.rkey(),
            target_region_.base()};
  }
  void set_peer(const Greeting& peer, const Address& address) {
    peer_ = peer;
    destinations_ = {Address(), address.with_port(peer.ud_port), address.with_port(peer.rd_port)};
  }
  RemoteMemory remote(uint64_t offset) const { return {peer_.rkey, peer_.base + offset}; }

  /// Sends a message, and waits until its memory is free again.
  void send(Way way, uint64_t number, STag invalidate = 0) {
    std::byte* const at = slot(way, kDepth);
    write_message(number, at);
    SendWorkRequest request = to(way);
    request.sges = {Sge{at, static_cast<uint32_t>(size_of(number)), region_.lkey()}};
    if (invalidate != 0) request.opcode = WrOpcode::send_with_invalidate;
    request.invalidate_stag = invalidate;
    finish(way, request);
  }

  /// A request of this size on memory of the target's, done to the end. Returns its status.
  WcStatus access(Way way, WrOpcode opcode, uint64_t offset) {
    SendWorkRequest request = to(way);
    request.opcode = opcode;
    request.sges = {Sge{target_.data() + offset, kPart, target_region_.lkey()}};
    request.remote = remote(offset);
    request.limits = {.timeout = 1s, .deadline = 5s, .retries = 3};
    require(qp(way).post_send(request), "a request was not posted");
    return *sent(way);
  }

  /// The next message, for which this sleeps; nothing after `patience`.
  std::optional<Message> receive(Duration patience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      if (!messages_.empty()) {
        Message first = messages_.front();
        messages_.erase(messages_.begin());
        return first;
      }
      const auto left = deadline - std::chrono::steady_clock::now();
      if (left <= Duration::zero()) return std::nullopt;
      wait(left);
    }
  }

 private:
  QueuePair make(QpType type) {
    return {pd_,
            {.type = type,
             .send_cq = cq_,
             .recv_cq = cq_,
             .capacity = {.max_send_wr = 16, .max_recv_wr = kDepth}}};
  }

  std::byte* slot(Way way, uint64_t number) {
    return memory_.data() + (way * (kDepth + 1) + number) * kSlot;
  }

  void post_recv(Way way, uint64_t number) {
    require(qps_[way].post_recv({.wr_id = way << 32 | number,
                                 .sges = {Sge{slot(way, number), kSlot, region_.lkey()}}}),
            "a receive was not posted");
  }

  SendWorkRequest to(Way way) const {
    SendWorkRequest request;
    request.wr_id = way;
    request.destination = destinations_[way];
    return request;
  }

  void finish(Way way, const SendWorkRequest& request) {
    require(qps_[way].post_send(request), "a Send was not posted");
    const WcStatus status = *sent(way);
    require(status == WcStatus::success,
            "a Send over " + std::string(kNames[way]) + ": " + std::string(to_string(status)));
  }

  /// The status of the request of this queue pair's that is under way.
  std::optional<WcStatus> sent(Way way) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done_[way]) {
      require(std::chrono::steady_clock::now() < deadline, "a request does not complete");
      wait(kPatience);
    }
    return std::exchange(done_[way], std::nullopt);
  }

  /// Arms, looks, and sleeps where there is nothing. A wake-up that is missed is an error.
  void wait(Duration limit) {
    if (poll()) return;
    cq_.arm();
    if (poll()) return;
    const bool woken = channel_.get_event(limit).has_value();
    wakes_ += woken ? 1 : 0;
    const bool some = poll();
    require(woken || !some || limit < kPatience / 2, "a wake-up was missed");
  }

  bool poll() {
    std::array<WorkCompletion, 16> batch;
    const size_t count = cq_.poll(batch);
    for (size_t i = 0; i < count; ++i) take(batch[i]);
    return count != 0;
  }

  void take(const WorkCompletion& completion) {
    const bool received =
        completion.opcode == WcOpcode::recv || completion.opcode == WcOpcode::recv_write_record;
    if (!received) {
      done_[completion.wr_id] = completion.status;
      return;
    }
    if (completion.status != WcStatus::success) return;  // flushed
    if (completion.opcode == WcOpcode::recv_write_record) return records_ += 1, void();
    const auto way = static_cast<Way>(completion.wr_id >> 32);
    const uint64_t number = completion.wr_id & 0xffff'ffff;
    messages_.push_back({way, read_message(slot(way, number), completion.byte_count), completion});
    post_recv(way, number);
  }

  Device device_;
  ProtectionDomain pd_;
  std::vector<std::byte> memory_;  // of each way: its receives, and one message that is sent
  MemoryRegion region_;
  std::vector<std::byte> target_;
  MemoryRegion target_region_;  // that the peer writes and reads
  CompletionChannel channel_;
  CompletionQueue cq_;
  std::array<QueuePair, kWays> qps_;
  Greeting peer_ = {};
  std::array<Address, kWays> destinations_;
  std::array<std::optional<WcStatus>, kWays> done_;
  std::vector<Message> messages_;
  uint64_t wakes_ = 0;
  uint64_t records_ = 0;
};

std::span<const std::byte> bytes_of(const Greeting& greeting) {
  return std::as_bytes(std::span(&greeting, 1));
}

Greeting greeting_in(std::span<const std::byte> data) {
  Greeting greeting{};
  require(data.size() >= sizeof greeting, "the peer's greeting is too short");
  std::memcpy(&greeting, data.data(), sizeof greeting);
  return greeting;
}

void check_written(End& end) {
  for (size_t i = 0; i < kPart; ++i) {
    require(end.target()[i] == pattern(11, i), "the Write's bytes are others");
    require(end.target()[kRecordAt + i] == pattern(11, kRecordAt + i),
            "the Write-Record's bytes are others");
  }
}

/// Answers until the peer is done.
void serve(End& end, const Options& options) {
  Listener listener(end.device(), options.port);
  std::printf("listening\n");
  std::fflush(stdout);
  auto request = listener.get_request(kPatience);
  require(request.has_value(), "nobody connects");
  end.set_peer(greeting_in(request->private_data()), request->peer_address());
  const Greeting own = end.greeting();
  request->accept(end.qp(kRc), {.private_data = bytes_of(own)});
  uint64_t counts[kWays] = {};
  for (bool over = false; !over;) {
    const auto message = end.receive(kPatience);
    require(message.has_value(), "no message comes");
    ++counts[message->way];
    if (message->number == kWritten) {
      const auto deadline = std::chrono::steady_clock::now() + kPatience;
      while (end.records() == 0) {
        require(!end.receive(10ms), "a message came too early");
        require(std::chrono::steady_clock::now() < deadline, "no Write-Record comes");
      }
      check_written(end);
    }
    if (message->number == kInvalidated) {
      require(message->completion.invalidated, "the invalidation is not told");
      require(!end.region().valid(), "the region is valid after it was invalidated");
    }
    over = message->number == kOver || message->number == kInvalidated;
    end.send(message->way, message->number);
  }
  // The peer tries what is refused now; a connection ends thereby.
  require(end.qp(kRc).wait_disconnected(kPatience), "the peer's Write was not refused");
  std::printf(
      "{\"ok\": true, \"wakes\": %llu, \"rc\": %llu, \"ud\": %llu, \"rd\": %llu}\n",
      static_cast<unsigned long long>(end.wakes()), static_cast<unsigned long long>(counts[kRc]),
      static_cast<unsigned long long>(counts[kUd]), static_cast<unsigned long long>(counts[kRd]));
}

/// One message each way, and the answers; one over UD is sent again where nothing comes.
uint64_t go_round(End& end, uint64_t number) {
  for (const Way way : {kRc, kUd, kRd}) end.send(way, number);
  std::array<bool, kWays> answered{};
  uint64_t again = 0;
  while (!answered[kRc] || !answered[kUd] || !answered[kRd]) {
    const bool only_ud = answered[kRc] && answered[kRd];
    const auto message = end.receive(only_ud ? kUdPatience : kPatience);
    if (!message) {
      require(only_ud && ++again < 100, "no answer comes");
      end.send(kUd, number);
      continue;
    }
    if (message->number == number) answered[message->way] = true;  // others: late duplicates
  }
  return again;
}

void expect_answer(End& end, Way way, uint64_t number) {
  for (;;) {
    const auto message = end.receive(kPatience);
    require(message.has_value(), "no answer comes");
    if (message->way == way && message->number == number) return;
  }
}

/// Both ways write into the peer's region under one STag; then it is invalidated.
void use_one_region(End& end, Way invalidate_by) {
  const WcStatus read = end.access(kUd, WrOpcode::rdma_read, 0);
  require(read == WcStatus::success, "the Read: " + std::string(to_string(read)));
  for (size_t i = 0; i < kPart; ++i)
    require(end.target()[i] == pattern(7, i), "the Read's bytes are others");
  for (size_t i = 0; i < end.target().size(); ++i) end.target()[i] = pattern(11, i);
  require(end.access(kRc, WrOpcode::rdma_write, 0) == WcStatus::success, "the Write failed");
  require(end.access(kRd, WrOpcode::write_record, kRecordAt) == WcStatus::success,
          "the Write-Record failed");
  end.send(kRc, kWritten);
  expect_answer(end, kRc, kWritten);

  end.send(invalidate_by, kInvalidated, end.remote(0).stag);
  expect_answer(end, invalidate_by, kInvalidated);
  require(end.access(kUd, WrOpcode::rdma_read, 0) != WcStatus::success,
          "a Read over datagrams was not refused");
  static_cast<void>(end.access(kRc, WrOpcode::rdma_write, 0));
  require(end.qp(kRc).wait_disconnected(kPatience), "a Write was not refused");
}

void connect(End& end, const Options& options) {
  const Address peer = Address::parse(options.peer).with_port(options.port);
  const Greeting own = end.greeting();
  end.set_peer(greeting_in(end.qp(kRc).connect(peer, {.private_data = bytes_of(own)})), peer);
  uint64_t again = 0;
  for (uint64_t number = 1; number <= options.rounds; ++number) again += go_round(end, number);
  use_one_region(end, options.invalidate_by == "rc" ? kRc : kRd);
  std::printf("{\"ok\": true, \"rounds\": %u, \"wakes\": %llu, \"ud_again\": %llu}\n",
              options.rounds, static_cast<unsigned long long>(end.wakes()),
              static_cast<unsigned long long>(again));
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("A reliable connection and queue pairs over datagrams on one address");
  app.add_option("--device", options.device, "name or address");
  app.add_option("--peer", options.peer, "the server's address; without it this is the server");
  app.add_option("--port", options.port, "of the server's listener");
  app.add_option("--rounds", options.rounds, "messages of each kind, client");
  app.add_option("--invalidate-by", options.invalidate_by, "rc or rd, client")
      ->check(CLI::IsMember({"rc", "rd"}));
  CLI11_PARSE(app, argc, argv);
  try {
    End end(options.device);
    if (options.peer.empty())
      serve(end, options);
    else
      connect(end, options);
    return 0;
  } catch (const std::exception& error) {
    std::printf("{\"ok\": false, \"error\": \"%s\"}\n", error.what());
    return 1;
  }
}
