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

/// A datagram of data, or an acknowledgement.
struct RdPacket {
  bool data = false;
  uint32_t sequence = 0;
  uint64_t content = 0;
  uint32_t acknowledged = 0;
  uint16_t window = 0;
  dgram::RdMap map;
};

/// Where datagrams of one or more wires wait for their turn.
class RdBottleneck {
 public:
  /// How long one that comes now takes to get through; nothing: the queue is full.
  std::optional<Duration> pass(const RdPath& path, Time now) {
    free_at_ = std::max(free_at_, now);
    if (free_at_ - now > path.service * static_cast<int64_t>(path.queue)) return std::nullopt;
    free_at_ += path.service;
    return free_at_ - now;
  }
  void shift(Duration by) { free_at_ += by; }

 private:
  Time free_at_{};
};

/// What is on the path, either way.
class RdWire {
 public:
  explicit RdWire(const RdPath& path) : path_(path), random_(path.seed) {}

  /// Both go through the bottleneck of the other one, which has to outlive this.
  void share_bottleneck(RdWire& other) { bottleneck_ = &other.own_; }
  /// The clock jumps, and what is on the path does not notice.
  void shift(Duration by) {
    decltype(packets_) moved;
    for (auto& [key, packet] : packets_)
      moved.emplace(std::pair(key.first + by, key.second), packet);
    packets_ = std::move(moved);
    own_.shift(by);
  }

  bool empty() const { return packets_.empty(); }
  Time next_arrival() const { return packets_.begin()->first.first; }
  RdPacket take_next() {
    const RdPacket packet = packets_.begin()->second;
    packets_.erase(packets_.begin());
    return packet;
  }

  void send_acknowledgement(const RdPacket& packet, Time now) {
    if (acks_cut || random_.chance(path_.ack_loss)) return;
    put(packet, now, path_.delay);
  }
  /// Nothing of the path's faults happens to it.
  void send_probe(const RdPacket& packet, Time now) {
    if (!cut) put(packet, now, path_.delay);
  }
  void send_data(const RdPacket& packet, Time now) {
    if (cut || random_.chance(path_.loss)) return;
    Duration delay = path_.delay;
    if (path_.service != Duration::zero()) {
      const std::optional<Duration> passed = bottleneck_->pass(path_, now);
      if (!passed) {
        ++lost_in_queue;
        return;
      }
      delay += *passed;
    }
    const auto jitter = static_cast<uint64_t>(path_.jitter.count());
    if (random_.chance(path_.reorder))
      delay += Duration(static_cast<int64_t>(random_.below(jitter)));
    put(packet, now, delay);
    if (random_.chance(path_.duplicate)) put(packet, now, delay + path_.delay);
  }

  bool cut = false;       // no data gets through
  bool acks_cut = false;  // no acknowledgement does
  uint64_t lost_in_queue = 0;

 private:
  void put(const RdPacket& packet, Time now, Duration delay) {
    packets_.emplace(std::pair(now + delay, order_++), packet);
  }

  const RdPath path_;
  Random random_;
  std::map<std::pair<Time, uint64_t>, RdPacket> packets_;
  uint64_t order_ = 0;
  RdBottleneck own_;
  RdBottleneck* bottleneck_ = &own_;
};

class RdSimulation {
 public:
  explicit RdSimulation(const RdPath& path, uint32_t window = 256, uint64_t first = 1,
                        CongestionControl control = CongestionControl::bbr)
      : wire(path), sender(first, static_cast<uint16_t>(window), control), receiver(window, first) {
    receiver.peer_told(static_cast<uint16_t>(window));
  }

  /// Sends `count` numbered datagrams; false if that is not done after `limit`.
  bool transfer(uint64_t count, Duration limit) {
    const Time end = now + limit;
    const uint64_t goal = posted_ + count;
    posted_ = goal;
    while (released != goal && now < end) step();
    return released == goal;
  }

  /// So many more are to be sent.
  void post(uint64_t count) {
    posted_ += count;
    transmit();
  }
  /// The clock jumps.
  void jump(Duration by) {
    now += by;
    wire.shift(by);
  }
  /// Neither end does anything for so long.
  void sleep(Duration duration) { now += duration; }
  /// One end does nothing for so long, and the other one goes on.
  void sleep_sender(Duration duration) { sender_wakes_ = now + duration; }
  void sleep_receiver(Duration duration) { receiver_wakes_ = now + duration; }
  /// When step() will have something to do.
  std::optional<Time> next_event() const {
    std::optional<Time> due = sender_deadline();
    const auto consider = [&](Time time) { due = due ? std::min(*due, time) : time; };
    if (!wire.empty()) consider(wire.next_arrival());
    if (!late_data_.empty()) consider(receiver_wakes_);
    if (!late_acks_.empty()) consider(sender_wakes_);
    return due;
  }

  void step() {
    const std::optional<Time> due = next_event();
    if (due) now = std::max(now, *due);
    const std::optional<Time> deadline = sender_deadline();
    if (deadline && *deadline <= now && sender.on_deadline(now, false, kLongest)) probe();
    while (!wire.empty() && wire.next_arrival() <= now) {
      const RdPacket packet = wire.take_next();
      (packet.data ? late_data_ : late_acks_).push_back(packet);
    }
    if (now >= receiver_wakes_) {
      for (const RdPacket& packet : std::exchange(late_data_, {})) take_data(packet);
      if (receiver.due() != dgram::Receiver::Due::nothing) acknowledge();
    }
    if (now < sender_wakes_) return;
    for (const RdPacket& packet : std::exchange(late_acks_, {})) take_ack(packet);
    transmit();
  }

  void acknowledge() {
    RdPacket packet;
    packet.acknowledged = receiver.acknowledged();
    packet.window = receiver.window(room);
    packet.map = receiver.map();
    receiver.told(true);
    wire.send_acknowledgement(packet, now);
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
  uint64_t released = 0;
  uint64_t transmissions = 0;
  std::vector<uint64_t> delivered;

 private:
  std::optional<Time> sender_deadline() const {
    const std::optional<Time> due = sender.deadline(false, kLongest);
    return due ? std::optional(std::max(*due, sender_wakes_)) : due;
  }

  void take_data(const RdPacket& packet) {
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

  void take_ack(const RdPacket& packet) {
    sender.acknowledged(packet.acknowledged, packet.window, &packet.map, now);
    while (const auto acknowledged = sender.scoreboard().release()) {
      if (acknowledged->tag.offset != static_cast<uint32_t>(released)) out_of_order = true;
      ++released;
    }
  }

  void transmit() {
    sender.begin_burst(now);
    for (uint64_t at = sender.first_lost(); at != dgram::Scoreboard::kNone;
         at = sender.first_lost()) {
      send(at, sender.scoreboard().tag(at).offset);
      sender.resent(at, now);
    }
    while (sent_ != posted_ && sender.may_send()) {
      send(sender.window().next(), sent_);
      sender.sent({.offset = static_cast<uint32_t>(sent_)}, now);
      ++sent_;
    }
    sender.end_burst(0, 0, sent_ != posted_ || sender.scoreboard().lost() != 0);
  }

  void probe() {
    RdPacket packet;
    packet.data = true;
    wire.send_probe(packet, now);
  }

  void send(uint64_t sequence, uint64_t content) {
    ++transmissions;
    RdPacket packet;
    packet.data = true;
    packet.sequence = static_cast<uint32_t>(sequence);
    packet.content = content;
    wire.send_data(packet, now);
  }

  dgram::ReorderBuffer buffer_{size_t{64} << 20};
  dgram::BufferShare share_;
  uint64_t posted_ = 0;
  uint64_t sent_ = 0;
  // What came while an end sleeps.
  Time sender_wakes_{}, receiver_wakes_{};
  std::vector<RdPacket> late_data_, late_acks_;

 public:
  RdWire wire;
  bool out_of_order = false;
  dgram::Sender sender;
  dgram::Receiver receiver;
};

}  // namespace diwarp::test
