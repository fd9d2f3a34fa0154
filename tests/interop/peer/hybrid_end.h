// SPDX-License-Identifier: Apache-2.0
// One end of hybrid_peer: queue pairs of three types with one completion queue and one channel.
#pragma once

#include <diwarp/verbs.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hybrid {

using namespace diwarp;
using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;
constexpr Duration kUdPatience = 500ms;  // a datagram may be lost
constexpr size_t kSlot = 2048;           // bytes
constexpr uint32_t kDepth = 32;          // receives of each queue pair
constexpr size_t kPart = 1000;           // bytes that each way writes
constexpr size_t kRecordAt = 4096;

inline void require(bool good, const std::string& what) {
  if (!good) throw std::runtime_error(what);
}

inline void require(std::error_code error, const char* what) {
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
  uint32_t tells_invalidations;  // whether its device tells those that come over RC
  uint64_t base;
};

/// The messages that are not of the rounds: their numbers are beyond those of rounds.
enum Step : uint64_t {
  kWritten = uint64_t{1} << 32,  // both ways have written
  kInvalidated,
  kWithdraw,    // deregister the region
  kStarve,      // post no more receives for RC
  kUnanswered,  // no answer is wanted
  kOver,        // the reliable connection has ended; this is the last message, without an answer
};

inline std::byte pattern(uint64_t number, size_t i) {
  return static_cast<std::byte>(number * 31 + i);
}

inline size_t size_of(uint64_t number) { return sizeof number + number * 37 % 1000; }

inline void write_message(uint64_t number, std::byte* to) {
  std::memcpy(to, &number, sizeof number);
  for (size_t i = sizeof number; i < size_of(number); ++i) to[i] = pattern(number, i);
}

/// The number of a message, whose bytes are checked.
inline uint64_t read_message(const std::byte* from, size_t size) {
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
        target_region_(std::in_place, pd_, target_,
                       Access::local_write | Access::remote_write | Access::remote_read |
                           Access::remote_invalidate),
        events_(device_),
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
  MemoryRegion& region() { return *target_region_; }
  void withdraw() { target_region_.reset(); }
  /// Posts no more receives for the reliable connection.
  void starve() { starved_ = true; }
  bool tells_invalidations() const {
    return has(device_.query().capabilities, Capability::told_invalidations);
  }
  uint64_t wakes() const { return wakes_; }
  /// Write-Records that came.
  uint64_t records() const { return records_; }

  Greeting greeting() const {
    return {.ud_port = qps_[kUd].address().port(),
            .rd_port = qps_[kRd].address().port(),
            .rkey = target_region_->rkey(),
            .tells_invalidations = tells_invalidations(),
            .base = target_region_->base()};
  }
  void set_peer(const Greeting& peer, const Address& address) {
    peer_ = peer;
    destinations_ = {Address(), address.with_port(peer.ud_port), address.with_port(peer.rd_port)};
  }
  const Greeting& peer() const { return peer_; }
  RemoteMemory remote(uint64_t offset) const { return {peer_.rkey, peer_.base + offset}; }

  /// Sends a message, and waits until its memory is free again.
  void send(Way way, uint64_t number, STag invalidate = 0) {
    const WcStatus status = try_send(way, number, invalidate);
    require(status == WcStatus::success,
            "a Send over " + std::string(kNames[way]) + ": " + std::string(to_string(status)));
  }

  /// The same; returns how it ended.
  WcStatus try_send(Way way, uint64_t number, STag invalidate = 0) {
    std::byte* const at = slot(way, kDepth);
    write_message(number, at);
    SendWorkRequest request = to(way);
    request.sges = {Sge{at, static_cast<uint32_t>(size_of(number)), region_.lkey()}};
    if (invalidate != 0) request.opcode = WrOpcode::send_with_invalidate;
    request.invalidate_stag = invalidate;
    require(qp(way).post_send(request), "a Send was not posted");
    return sent(way);
  }

  /// A request of kPart bytes at this place of the target's, done to the end. Returns its status.
  WcStatus access(Way way, WrOpcode opcode, uint64_t offset, RemoteMemory remote) {
    SendWorkRequest request = to(way);
    request.opcode = opcode;
    request.sges = {Sge{target_.data() + offset, kPart, target_region_->lkey()}};
    request.remote = remote;
    request.limits = {.timeout = 1s, .deadline = 5s, .retries = 3};
    require(qp(way).post_send(request), "a request was not posted");
    return sent(way);
  }

  /// Until the reliable connection has ended, an event has told it, and all receives are flushed.
  void await_end() {
    require(qp(kRc).wait_disconnected(kPatience), "the reliable connection does not end");
    for (bool told = false; !told;) {
      const auto event = events_.get_event(kPatience);
      require(event.has_value(), "no event tells that the connection has ended");
      told =
          (event->type == AsyncEventType::qp_fatal || event->type == AsyncEventType::peer_closed) &&
          event->qp_number == qp(kRc).number();
    }
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (posted_[kRc] != 0) {
      require(std::chrono::steady_clock::now() < deadline, "receives are not flushed");
      wait(kUdPatience);
    }
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
             .capacity = {.max_send_wr = 16, .max_recv_wr = kDepth},
             .stream = {.receive_not_ready = ReceiveNotReady::terminate}}};
  }

  std::byte* slot(Way way, uint64_t number) {
    return memory_.data() + (way * (kDepth + 1) + number) * kSlot;
  }

  void post_recv(Way way, uint64_t number) {
    require(qps_[way].post_recv({.wr_id = way << 32 | number,
                                 .sges = {Sge{slot(way, number), kSlot, region_.lkey()}}}),
            "a receive was not posted");
    ++posted_[way];
  }

  SendWorkRequest to(Way way) const {
    SendWorkRequest request;
    request.wr_id = way;
    request.destination = destinations_[way];
    return request;
  }

  /// The status of the request of this queue pair's that is under way.
  WcStatus sent(Way way) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done_[way]) {
      require(std::chrono::steady_clock::now() < deadline, "a request does not complete");
      wait(kPatience);
    }
    return *std::exchange(done_[way], std::nullopt);
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
    if (completion.opcode == WcOpcode::recv_write_record) return records_ += 1, void();
    const auto way = static_cast<Way>(completion.wr_id >> 32);
    --posted_[way];
    if (completion.status != WcStatus::success) return;  // flushed
    const uint64_t number = completion.wr_id & 0xffff'ffff;
    messages_.push_back({way, read_message(slot(way, number), completion.byte_count), completion});
    if (!starved_ || way != kRc) post_recv(way, number);
  }

  Device device_;
  ProtectionDomain pd_;
  std::vector<std::byte> memory_;  // of each way: its receives, and one message that is sent
  MemoryRegion region_;
  std::vector<std::byte> target_;
  std::optional<MemoryRegion> target_region_;  // that the peer writes and reads
  EventQueue events_;
  CompletionChannel channel_;
  CompletionQueue cq_;
  std::array<QueuePair, kWays> qps_;
  Greeting peer_ = {};
  std::array<Address, kWays> destinations_;
  std::array<std::optional<WcStatus>, kWays> done_;
  std::array<uint32_t, kWays> posted_{};  // receives
  bool starved_ = false;
  std::vector<Message> messages_;
  uint64_t wakes_ = 0;
  uint64_t records_ = 0;
};

}  // namespace hybrid
