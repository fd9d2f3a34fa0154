// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "dgram/rd_header.h"
#include "dgram/receiver.h"
#include "dgram/reorder_buffer.h"
#include "dgram/sender.h"

/// One direction of an association over a path that loses, delays, reorders and duplicates, in
/// simulated time: the same seed gives the same run.
namespace diwarp::test {

struct RdPath {
  uint64_t seed = 1;
  double loss = 0;  // of data
  double ack_loss = 0;
  double reorder = 0;  // held back by up to `jitter`
  double duplicate = 0;
  Duration delay = std::chrono::microseconds(500);  // one way
  Duration jitter = std::chrono::milliseconds(2);
  Duration service{0};      // of the bottleneck, for each datagram; 0: none
  size_t queue = SIZE_MAX;  // datagrams that the bottleneck keeps
};

class RdSimulation {
 public:
  struct Packet {
    bool data = false;
    uint32_t sequence = 0;
    uint64_t content = 0;
    uint32_t acknowledged = 0;
    uint16_t window = 0;
    dgram::RdMap map;
  };

  explicit RdSimulation(const RdPath& path, uint32_t window = 256, uint64_t first = 1)
      : path_(path),
        random_(path.seed),
        sender(first, static_cast<uint16_t>(window)),
        receiver(window, first) {}

  /// Sends `count` numbered datagrams; false if that is not done after `limit`.
  bool transfer(uint64_t count, Duration limit) {
    const Time end = now + limit;
    const uint64_t goal = posted_ + count;
    posted_ = goal;
    while (released != goal && now < end) step();
    return released == goal;
  }

  void step() {
    const std::optional<Time> due = next_event();
    if (due) now = std::max(now, *due);
    const std::optional<Time> deadline = sender.deadline(false, kLongest);
    if (deadline && *deadline <= now && sender.on_deadline(now, false, kLongest)) probe();
    while (!wire_.empty() && wire_.begin()->first.first <= now) {
      const Packet packet = wire_.begin()->second;
      wire_.erase(wire_.begin());
      if (packet.data)
        take_data(packet);
      else
        take_ack(packet);
    }
    if (receiver.due() != dgram::Receiver::Due::nothing) acknowledge();
    transmit();
  }

  void acknowledge() {
    Packet packet;
    packet.acknowledged = receiver.acknowledged();
    packet.window = receiver.window(room);
    packet.map = receiver.map();
    receiver.told(true);
    if (random_.chance(path_.ack_loss)) return;
    put(packet, path_.delay);
  }

  /// Delivers what can be, while `blocked` is not set.
  void deliver_kept() {
    while (!blocked) {
      dgram::BufferedDatagram* const kept = receiver.take_next();
      if (kept == nullptr) return;
      uint64_t content = 0;
      std::memcpy(&content, kept->bytes().data(), sizeof content);
      buffer_.release(kept, share_);
      delivered.push_back(content);
      receiver.delivered();
    }
  }

  ~RdSimulation() {
    while (dgram::BufferedDatagram* kept = receiver.take_any()) buffer_.release(kept, share_);
  }

  static constexpr Duration kLongest = std::chrono::seconds(1);
  Time now{std::chrono::hours(1)};
  uint32_t room = 1U << 20;
  bool blocked = false;
  bool cut = false;  // nothing gets through
  uint64_t released = 0;
  uint64_t transmissions = 0;
  uint64_t lost_in_queue = 0;
  std::vector<uint64_t> delivered;

 private:
  std::optional<Time> next_event() const {
    std::optional<Time> due = sender.deadline(false, kLongest);
    if (!wire_.empty() && (!due || wire_.begin()->first.first < *due))
      due = wire_.begin()->first.first;
    return due;
  }

  void put(const Packet& packet, Duration delay) {
    wire_.emplace(std::pair(now + delay, order_++), packet);
  }

  void take_data(const Packet& packet) {
    if (packet.sequence == 0 && packet.content == 0) return receiver.ask_now();
    const auto arrival = receiver.arrived(packet.sequence);
    if (arrival == dgram::Receiver::Arrival::next && !blocked) {
      delivered.push_back(packet.content);
      receiver.delivered();
      return deliver_kept();
    }
    if (arrival == dgram::Receiver::Arrival::next || arrival == dgram::Receiver::Arrival::early)
      receiver.keep(receiver.number(packet.sequence),
                    buffer_.keep(dgram::RdKind::data, 0,
                                 std::as_bytes(std::span(&packet.content, 1)), share_),
                    buffer_, share_);
  }

  void take_ack(const Packet& packet) {
    sender.acknowledged(packet.acknowledged, packet.window, &packet.map, now);
    while (const auto acknowledged = sender.scoreboard().release()) {
      if (acknowledged->tag.offset != static_cast<uint32_t>(released)) out_of_order = true;
      ++released;
    }
  }

  void transmit() {
    for (uint64_t at = sender.next_lost(0); at != dgram::Scoreboard::kNone;
         at = sender.next_lost(at + 1)) {
      send(at, sender.scoreboard().tag(at).offset);
      sender.resent(at, now);
    }
    while (sent_ != posted_ && sender.may_send()) {
      send(sender.window().next(), sent_);
      sender.sent({.offset = static_cast<uint32_t>(sent_)}, now);
      ++sent_;
    }
  }

  void probe() {
    Packet packet;
    packet.data = true;
    if (!cut) put(packet, path_.delay);
  }

  void send(uint64_t sequence, uint64_t content) {
    ++transmissions;
    if (cut || random_.chance(path_.loss)) return;
    Packet packet;
    packet.data = true;
    packet.sequence = static_cast<uint32_t>(sequence);
    packet.content = content;
    Duration delay = path_.delay;
    if (path_.service != Duration::zero()) {
      free_at_ = std::max(free_at_, now);
      if (free_at_ - now > path_.service * static_cast<int64_t>(path_.queue)) {
        ++lost_in_queue;
        return;
      }
      free_at_ += path_.service;
      delay += free_at_ - now;
    }
    const auto jitter = static_cast<uint64_t>(path_.jitter.count());
    if (random_.chance(path_.reorder))
      delay += Duration(static_cast<int64_t>(random_.below(jitter)));
    put(packet, delay);
    if (random_.chance(path_.duplicate)) put(packet, delay + path_.delay);
  }

  const RdPath path_;
  Random random_;
  std::map<std::pair<Time, uint64_t>, Packet> wire_;
  uint64_t order_ = 0;
  dgram::ReorderBuffer buffer_{size_t{64} << 20};
  dgram::BufferShare share_;
  uint64_t posted_ = 0;
  uint64_t sent_ = 0;
  Time free_at_{};

 public:
  bool out_of_order = false;
  dgram::Sender sender;
  dgram::Receiver receiver;
};

}  // namespace diwarp::test
