// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "ddp/closed_messages.h"
#include "dgram/association.h"
#include "rdmap/datagram.h"
#include "rdmap/terminate.h"
#include "rnic/ud_sources.h"
#include "rnic/work_queue.h"

/// The parts of what an RD queue pair knows of one peer. Each owns its fields, and does no more
/// than keep them right. With the baton.
namespace diwarp::rnic {

/// Where there was no memory to deliver or to send a datagram, it is tried again after so long.
inline constexpr Duration kRdMemoryRetry = std::chrono::milliseconds(10);

/// A Send of the peer that is not whole yet.
struct RdMessage {
  ReceiveEntry* receive = nullptr;  ///< null: there is none
  uint32_t msn = 0;                 ///< of the last one, where there is none
  uint64_t placed = 0;
  Time last_progress{};
  MessageFacts facts;
};

/// What has come of the peer's messages, and which of them are over although more of them may come.
class RdInbound {
 public:
  /// MSNs are counted over all peers of the source. So far before the last Send that was delivered
  /// is one that is repeated; what is further off is new, however often they have wrapped.
  static constexpr uint32_t kMostRepeated = uint32_t{1} << 20;

  // --- The Send that is not whole yet.

  const RdMessage& message() const { return message_; }
  bool has_message() const { return message_.receive != nullptr; }
  /// Whether `name` is the Send that is not whole yet, or was the last one.
  bool is_message(const dgram::MessageName& name) const { return name == message_name(); }
  void begin_message(ReceiveEntry& receive, const rdmap::DatagramSegment& segment, Time now) {
    message_ = {.receive = &receive,
                .msn = segment.msn,
                .last_progress = now,
                .facts = MessageFacts::of(segment)};
    expired_.reset();
  }
  void placed(size_t bytes, Time now) {
    message_.placed += bytes;
    message_.last_progress = now;
  }
  /// There is none any more. Returns its receive; null where there was none.
  ReceiveEntry* end_message() { return std::exchange(message_.receive, nullptr); }
  /// The Send is given up for want of progress, and refused when more of it comes.
  void expire_message() { expired_ = message_name(); }
  bool has_expired(const dgram::MessageName& name) const { return expired_ == name; }
  void forget_expired() { expired_.reset(); }

  // --- Messages whose rest is ignored: one at a time.

  void ignore_rest(const dgram::MessageName& name) { ignored_ = name; }
  bool ignores(const dgram::MessageName& name) const { return ignored_ == name; }
  void ignore_nothing() { ignored_.reset(); }

  // --- Refusals.

  void refuse(TerminateCode code) { refusal_ = code; }
  void refuse_message(const dgram::MessageName& name) { refused_ = name; }
  TerminateCode refusal() const { return refusal_; }
  /// Whether it is the last message that was refused, with refusal().
  bool was_refused(const dgram::MessageName& name) const { return refused_ == name; }

  // --- What the peer may send once more, in another association.

  void delivered_send(uint32_t msn) {
    delivered_msn_ = msn;
    has_delivered_ = true;
  }
  void association_ended() {
    ignored_.reset();
    repeats_ = true;
  }
  /// Another incarnation of the peer has sent nothing yet.
  void incarnation_replaced() { has_delivered_ = false; }
  /// Something came that is new.
  void new_message() { repeats_ = false; }
  /// Whether an association has ended, and nothing that is new came in the next one.
  bool may_repeat() const { return repeats_; }
  /// Whether a Send that begins was delivered before: its acknowledgement got lost. One that was
  /// not is new.
  bool repeats_send(uint32_t msn) {
    if (!repeats_ || !has_delivered_) return false;
    repeats_ = delivered_msn_ - msn < kMostRepeated;
    return repeats_;
  }

 private:
  dgram::MessageName message_name() const { return {dgram::MessageKind::send, message_.msn}; }

  RdMessage message_;
  std::optional<dgram::MessageName> ignored_ = {};
  std::optional<dgram::MessageName> refused_ = {};
  std::optional<dgram::MessageName> expired_ = {};
  TerminateCode refusal_;
  uint32_t delivered_msn_ = 0;
  bool has_delivered_ = false;  // a Send, of this incarnation
  bool repeats_ = false;
};

/// Whether the peer's next datagram may be delivered.
class RdTurn {
 public:
  bool may_deliver() const { return !held_ && !refusing_; }
  /// The next datagram was refused, and the peer does not know yet.
  bool refusing() const { return refusing_; }
  /// The next datagram waits, and so do those after it.
  bool held() const { return held_; }

  void begin_refusal() { refusing_ = true; }
  void end_refusal() { refusing_ = false; }
  void hold() { held_ = true; }
  void resume() {
    held_ = false;
    retry_at_ = Time::max();
  }
  /// Something, delivered or to be sent, waits for memory.
  void wait_for_memory(Time now) { retry_at_ = std::min(retry_at_, now + kRdMemoryRetry); }
  /// Time::max() where nothing waits for memory.
  Time retry_at() const { return retry_at_; }

 private:
  bool refusing_ = false;
  bool held_ = false;
  Time retry_at_ = Time::max();
};

/// What is to be sent to the peer besides its work.
class RdSigns {
 public:
  /// Whether what is lost cannot be sent again for now, and nothing else was. Then a probe takes
  /// its place at the next deadline.
  void set_blocked(bool blocked) { blocked_ = blocked; }
  bool blocked() const { return blocked_; }

  void want_open() { open_ = true; }
  void want_probe() { probe_ = true; }
  bool open_wanted() const { return open_; }
  bool probe_wanted() const { return probe_; }
  void open_done() { open_ = false; }
  void probe_done() { probe_ = false; }

  /// What came is acknowledged at that time, if nothing takes the acknowledgement along before.
  void acknowledge_at(Time time) { acknowledge_at_ = time; }
  void acknowledged() { acknowledge_at_ = Time::max(); }
  bool acknowledges() const { return acknowledge_at_ != Time::max(); }
  Time acknowledge_at() const { return acknowledge_at_; }

  void clear() { *this = RdSigns(); }

 private:
  bool blocked_ = false;
  bool open_ = false;
  bool probe_ = false;
  Time acknowledge_at_ = Time::max();
};

/// When something was last heard of the peer, and done for it.
class RdTimes {
 public:
  explicit RdTimes(Time now) : heard_(now), used_(now) {}

  void heard(Time now) { heard_ = now; }
  void used(Time now) { used_ = now; }
  /// Something of the peer is awaited from now on.
  void waits(Time now) { waiting_since_ = now; }
  /// The last delivery, in any association.
  void delivered(Time now) { delivered_ = now; }

  Time quiet_since() const { return std::max(heard_, used_); }
  /// Since when nothing was heard although something is awaited.
  Time silent_since() const { return std::max(heard_, waiting_since_); }
  bool has_delivered_within(Duration duration, Time now) const {
    return delivered_ != Time{} && now - delivered_ < duration;
  }

 private:
  Time heard_;
  Time used_;
  Time waiting_since_{};
  Time delivered_{};
};

/// How often what is under way is begun anew, in another association: not again and again where
/// nothing of it ever gets through.
class RdRewinds {
 public:
  /// Times in a row that nothing of it was done.
  static constexpr uint8_t kMost = 4;

  /// Once more. False: it is given up.
  bool begin_anew() {
    if (++fruitless_ > kMost) return fruitless_ = 0, false;
    rewound_ = true;
    return true;
  }
  void progress() { fruitless_ = 0; }
  /// Whether what is not done was begun in an association that has ended.
  bool rewound() const { return rewound_; }
  void established() { rewound_ = false; }

 private:
  uint8_t fruitless_ = 0;
  bool rewound_ = false;
};

}  // namespace diwarp::rnic
