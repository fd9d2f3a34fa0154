// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "ddp/closed_messages.h"
#include "dgram/handshake.h"
#include "rdmap/datagram.h"
#include "rdmap/terminate.h"
#include "rnic/queues/work_queue.h"

/// The parts of what an RD queue pair knows of one peer. Each owns its fields, and does no more
/// than keep them right. With the baton.
namespace diwarp::rnic {

/// Where there was no memory to deliver or to send a datagram, it is tried again after so long.
inline constexpr Duration kRdMemoryRetry = std::chrono::milliseconds(10);

/// A Send of the peer that is not whole yet.
struct RdMessage {
  ReceiveEntry* receive = nullptr;  ///< null: there is none
  uint32_t msn = 0;                 ///< of the last one, where there is none
  uint32_t placed = 0;              ///< bytes; parsed segments do not reach beyond kMaxMessage
  Time last_progress{};
  rdmap::MessageInfo info;
};

/// What of the peer's messages was delivered, to know what it sends once more in another
/// association.
class RdRepeats {
 public:
  /// MSNs are counted over all peers of the source. So far before the last Send that was delivered
  /// is one that is repeated; one that is further off is new, however often they have wrapped.
  static constexpr uint32_t kMostRepeated = uint32_t{1} << 20;

  void delivered_send(uint32_t msn) {
    delivered_msn_ = msn;
    has_delivered_ = true;
  }
  /// A Read Request had its turn. One that is repeated is not the last that came.
  void delivered_request(uint32_t msn) {
    if (repeats_request(msn)) return;  // guard(rnic)
    request_msn_ = msn;
    has_request_ = true;
  }
  /// A segment of a Write-Record was reported, by itself. They come in order.
  void reported_segment(const rdmap::DatagramSegment& segment) {
    reported_msn_ = segment.msn;
    reported_bytes_ = static_cast<uint32_t>(segment.message_offset + segment.payload.size());
    has_reported_ = true;
    reported_last_ = segment.last;
  }
  /// How many bytes of this segment, from its beginning, were reported before; nothing where all of
  /// it was. It may be cut otherwise this time.
  std::optional<size_t> reported_of(const rdmap::DatagramSegment& segment) const {
    if (!has_reported_) return 0;  // guard(rd-record-repeated): => return 0;
    const bool earlier = repeats_ && reported_msn_ - segment.msn < kMostRepeated;
    if (segment.msn != reported_msn_) return earlier ? std::nullopt : std::optional<size_t>(0);
    const uint64_t begin = std::min<uint64_t>(segment.message_offset, reported_bytes_);
    const uint64_t end = segment.message_offset + segment.payload.size();
    if (end <= reported_bytes_ && (reported_last_ || !segment.last)) return std::nullopt;
    return std::min<size_t>(reported_bytes_ - begin, segment.payload.size());
  }
  void association_ended() { repeats_ = true; }
  /// Another incarnation of the peer has sent nothing yet.
  void incarnation_replaced() { has_delivered_ = has_request_ = has_reported_ = false; }
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
  /// The same of a Read Request: what came after it may be repeated as well.
  bool repeats_request(uint32_t msn) const {
    return repeats_ && has_request_ && request_msn_ - msn < kMostRepeated;
  }

 private:
  bool has_delivered_ = false;  // a Send, of this incarnation
  bool has_request_ = false;    // the same of a Read Request
  bool has_reported_ = false;   // the same of a Write-Record's segment that was reported by itself
  bool reported_last_ = false;  // the last of these ended its message
  bool repeats_ = false;
  uint32_t delivered_msn_ = 0;
  uint32_t request_msn_ = 0;
  uint32_t reported_msn_ = 0;
  uint32_t reported_bytes_ = 0;  // of that message
};

/// What has come of the peer's messages, and which of them are over although more of them may come.
class RdInbound {
 public:
  RdRepeats& repeats() { return repeats_; }
  const RdRepeats& repeats() const { return repeats_; }

  // --- The Send that is not whole yet.

  const RdMessage& message() const { return message_; }
  bool has_message() const { return message_.receive != nullptr; }
  /// Whether `name` is the Send that is not whole yet, or was the last one.
  bool is_message(const dgram::MessageName& name) const { return name == message_name(); }
  void begin_message(ReceiveEntry& receive, const rdmap::DatagramSegment& segment, Time now) {
    message_ = {.receive = &receive,
                .msn = segment.msn,
                .last_progress = now,
                .info = rdmap::MessageInfo::of(segment)};
    shares_ = !segment.last;
    expired_ = kNone;
  }
  /// Whether that Send has more than one segment, and so holds a share of the receives.
  bool has_share() const { return has_message() && shares_; }
  /// Only new bytes are progress: segments may have none.
  void placed(size_t bytes, Time now) {
    message_.placed += static_cast<uint32_t>(bytes);
    // guard(rd-empty-segments): without if (bytes != 0)
    if (bytes != 0) message_.last_progress = now;  // guard(rd-empty-segments)
  }
  /// The next segment of it was here, and had to wait.
  void waited(Time now) { message_.last_progress = now; }
  /// There is none any more. Returns its receive; null where there was none.
  ReceiveEntry* end_message() { return std::exchange(message_.receive, nullptr); }
  /// The Send is given up for want of progress, and refused when more of it comes.
  void expire_message() { expired_ = message_name(); }
  bool has_expired(const dgram::MessageName& name) const { return expired_ == name; }
  void forget_expired() { expired_ = kNone; }

  // --- Messages whose rest is ignored: one at a time.

  void ignore_rest(const dgram::MessageName& name) { ignored_ = name; }
  bool ignores(const dgram::MessageName& name) const {
    // guard(rd-skip): => return ignored_ != kNone;
    return ignored_ == name;
  }
  void ignore_nothing() { ignored_ = kNone; }

  // --- Refusals.

  void refuse(TerminateCode code) { refusal_ = code; }
  void refuse_message(const dgram::MessageName& name) { refused_ = name; }
  TerminateCode refusal() const { return refusal_; }
  /// Whether it is the last message that was refused, with refusal().
  bool was_refused(const dgram::MessageName& name) const { return refused_ == name; }

  void association_ended() {
    ignored_ = kNone;
    repeats_.association_ended();
  }

 private:
  dgram::MessageName message_name() const { return {dgram::MessageKind::send, message_.msn}; }

  /// Names no message: no kind has this number.
  static constexpr dgram::MessageName kNone{static_cast<dgram::MessageKind>(0), 0};

  RdMessage message_;
  dgram::MessageName ignored_ = kNone;
  dgram::MessageName refused_ = kNone;
  dgram::MessageName expired_ = kNone;
  TerminateCode refusal_;
  RdRepeats repeats_;
  bool shares_ = false;  // the Send that is not whole has several segments
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
    held_ = limited_ = false;
    retry_at_ = Time::max();
  }
  /// Something, delivered or to be sent, waits for memory.
  void wait_for_memory(Time now) { retry_at_ = std::min(retry_at_, now + kRdMemoryRetry); }
  /// The next datagram names memory, and waits until `time`: see StagMissLimit.
  void wait_for_stag_limit(Time time, Time now) {
    limited_ = true;
    retry_at_ = retry_at_ > now ? std::min(retry_at_, time) : time;
  }
  bool waits_for_stag_limit() const { return limited_; }
  /// Whether it is the peer's turn, of those that stand in line for that limit, to name memory
  /// once.
  bool is_first_in_line() const { return first_in_line_; }
  void set_first_in_line(bool is) { first_in_line_ = is; }
  /// Time::max() where nothing waits for memory, or for that limit.
  Time retry_at() const { return retry_at_; }

 private:
  bool refusing_ = false;
  bool held_ = false;
  bool limited_ = false;
  bool first_in_line_ = false;
  Time retry_at_ = Time::max();
};

/// The datagrams to be sent to the peer besides its work.
class RdSigns {
 public:
  /// Whether the peer is asked until it is heard: it may not be there any more.
  void doubt() { doubted_ = probe_ = true; }
  void heard() { doubted_ = false; }
  bool doubted() const { return doubted_; }

  /// Whether lost datagrams cannot be sent again for now, and no other was sent. Then a probe takes
  /// its place at the next deadline.
  void set_blocked(bool blocked) { blocked_ = blocked; }
  bool blocked() const { return blocked_; }

  void want_open() { open_ = true; }
  void want_probe() { probe_ = true; }
  bool open_wanted() const { return open_; }
  bool probe_wanted() const { return probe_; }
  void open_done() { open_ = false; }
  void probe_done() { probe_ = false; }

  /// Received datagrams are acknowledged at that time, if nothing takes the acknowledgement along
  /// before.
  void acknowledge_at(Time time) { acknowledge_at_ = time; }
  void acknowledged() { acknowledge_at_ = Time::max(); }
  bool acknowledges() const { return acknowledge_at_ != Time::max(); }
  Time acknowledge_at() const { return acknowledge_at_; }

  void clear() { *this = RdSigns(); }

 private:
  bool doubted_ = false;
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
  /// From now on it is for the peer to send the datagram that what came early waits for.
  void lacks_next(Time now) { lacking_since_ = now; }
  /// Some of the work for the peer was done, or there was none before.
  void advanced(Time now) { advanced_ = now; }

  Time quiet_since() const { return std::max(heard_, used_); }
  /// Since when nothing was heard although something is awaited.
  Time silent_since() const { return std::max(heard_, waiting_since_); }
  /// Since when nothing was delivered of what the peer has to send, where something waits for it.
  Time lacking_since() const { return std::max(delivered_, lacking_since_); }
  bool has_advanced_within(Duration duration, Time now) const { return now - advanced_ < duration; }
  bool has_delivered_within(Duration duration, Time now) const {
    return delivered_ != Time{} && now - delivered_ < duration;
  }

 private:
  Time heard_;
  Time used_;
  Time waiting_since_{};
  Time delivered_{};
  Time lacking_since_{};
  Time advanced_{};
};

/// How often what is under way is begun anew, in another association: not again and again where
/// nothing of it ever gets through.
class RdRewinds {
 public:
  /// Times in a row that nothing of it was done.
  static constexpr uint8_t kMost = 4;

  /// Once more. False: it is given up. `uncertain`: parts of it may have been delivered, and only a
  /// peer that remembers them can tell.
  bool begin_anew(bool uncertain) {
    if (++fruitless_ > kMost) return fruitless_ = 0, false;
    uncertain_ = uncertain_ || uncertain;
    rewound_ = true;
    return true;
  }
  void progress() {
    fruitless_ = 0;
    progressed_ = true;
  }
  /// Whether there was progress since the last call.
  bool take_progress() { return std::exchange(progressed_, false); }
  /// Whether what is not done was begun in an association that has ended.
  bool rewound() const { return rewound_; }
  bool uncertain() const { return uncertain_; }
  void established() { rewound_ = false; }
  /// All that was begun is done.
  void nothing_left() { uncertain_ = rewound_ = false; }

 private:
  uint8_t fruitless_ = 0;
  bool progressed_ = false;
  bool rewound_ = false;
  bool uncertain_ = false;
};

}  // namespace diwarp::rnic
