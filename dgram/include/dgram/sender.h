// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "dgram/congestion.h"
#include "dgram/rd_header.h"

namespace diwarp::dgram {

/// What a sequenced datagram carries: the owner's words, by which it is made anew when it has to be
/// sent again.
struct RdMark {
  void* object = nullptr;
  uint32_t offset = 0;
  uint32_t length = 0;
  uint32_t tag = 0;
  uint8_t what = 0;
};

/// The sending half of an association: which datagrams are under way, which came, which are lost,
/// and how many may go. Sequence numbers are 64 bits wide here and never wrap. Time comes in as an
/// argument. Memory grows with what is under way and is kept until release_memory().
class Sender {
 public:
  /// A sequence number that none has.
  static constexpr uint64_t kNone = UINT64_MAX;

  explicit Sender(uint64_t first = 1)
      : next_(first),
        una_(first),
        released_(first),
        edge_(first),
        recovery_(first),
        round_(first) {}

  // --- What to send.

  uint64_t next() const { return next_; }
  /// Whether the peer's window and the congestion window let a new datagram go, `ahead` other new
  /// ones and `again` old ones having been decided on before.
  bool may_send(uint32_t ahead = 0, uint32_t again = 0) const;
  /// The same, but of the peer's window alone.
  bool window_open() const { return next_ < edge_; }
  /// The first datagram from `from` on that is to be sent again, `ahead` others having been decided
  /// on before; kNone where none is, or the congestion window is in use.
  uint64_t next_lost(uint64_t from, uint32_t ahead = 0) const;
  uint64_t first_unacknowledged() const { return una_; }
  /// Of a datagram that was sent and is not released.
  const RdMark& mark(uint64_t sequence) const { return slot(sequence).mark; }

  /// Takes memory for `count` more datagrams. False where it cannot be had.
  bool prepare(uint32_t count = 1);
  /// next() was sent; prepared for.
  void sent(const RdMark& mark, Time now);
  /// It was sent again.
  void resent(uint64_t sequence, Time now);

  // --- What the peer says.

  enum class News : uint8_t {
    lie,       ///< of what was never sent: the datagram is to be dropped
    stale,     ///< nothing new
    progress,  ///< something came
  };
  /// `map` null: none was sent.
  News acknowledged(uint32_t acknowledged, uint16_t window, const RdMap* map, Time now);
  /// The peer's window before it has said anything else.
  void open_window(uint16_t window) { edge_ = std::max(edge_, una_ + window); }
  /// Hands out the marks of acknowledged datagrams in order, each once.
  std::optional<RdMark> release();

  /// The datagram is to be sent again at once, in whatever form, unless it came.
  void recall(uint64_t sequence);
  /// The first that is not acknowledged is to be sent again at once, even if it came.
  void recall_first();
  /// Gives the owner each mark that is not released to change, and tells whether its datagram came.
  template <class Visit>
  void for_each_mark(Visit&& visit) {
    for (uint64_t at = released_; at != next_; ++at)
      visit(slot(at).mark, (slot(at).state & came) != 0);
  }

  // --- Time.

  /// When on_deadline() is due; nothing: no news is awaited. `wanted`: more than what is under way
  /// is awaited of the peer (a response, a window). `longest`: between two attempts.
  std::optional<Time> deadline(bool wanted, Duration longest) const;
  /// The deadline has come. True: a probe is to be sent, for there is nothing to send again.
  bool on_deadline(Time now, bool wanted, Duration longest);
  /// The peer gave a sign of life, or something is awaited of it from now on.
  void heard(Time now) {
    waiting_since_ = now;
    if (idle()) backoff_ = 0;
  }

  // --- What there is.

  bool idle() const { return una_ == next_; }
  uint64_t outstanding() const { return next_ - una_; }
  /// Under way, as far as is known.
  uint32_t in_flight() const { return in_flight_; }
  /// Not before this time was anything of what is outstanding sent.
  Time outstanding_since() const { return outstanding_since_; }
  uint64_t retransmitted() const { return retransmitted_; }
  uint32_t congestion_window() const { return congestion_.window(); }
  RoundTrip& round_trip() { return round_trip_; }
  const RoundTrip& round_trip() const { return round_trip_; }
  /// Where nothing is outstanding or unreleased.
  void release_memory();

 private:
  enum State : uint8_t {
    came = 1,      // acknowledged, by the map or for good
    lost = 2,      // to be sent again
    repeated = 4,  // sent more than once
    urgent = 8,    // whatever the congestion window says
  };
  struct Slot {
    RdMark mark;
    uint8_t state = 0;
    uint32_t order = 0;  // of all transmissions
    Time sent{};
  };
  struct Arrivals {
    uint32_t count = 0;
    uint32_t order = 0;              // of the latest transmission among them
    std::optional<Duration> sample;  // of that, where it was the only one of its datagram
  };

  Slot& slot(uint64_t sequence) const { return slots_[sequence & (capacity_ - 1)]; }
  bool is_lie(uint64_t cumulative, const RdMap* map) const;
  void arrived(Slot& slot, Time now, Arrivals& arrivals);
  bool is_of_first_transmission(const Slot& slot, Time now) const;
  void take_map(uint64_t cumulative, const RdMap& map, Time now, Arrivals& arrivals);
  void account(const Arrivals& arrivals, bool limited, Time now);
  void detect_losses(Time now);
  bool judge_lost(const Slot& slot, Time now);
  void lose(Slot& slot);
  void enter_recovery(uint64_t sequence, Time now);
  void transmit(Slot& slot, Time now);
  Duration backed_off(Duration longest) const;

  std::unique_ptr<Slot[]> slots_;
  uint32_t capacity_ = 0;
  uint64_t next_;
  uint64_t una_;       // the first that is not acknowledged for good
  uint64_t released_;  // the first that was not handed out by release()
  uint64_t edge_;      // the first that the peer has no window for
  uint64_t recovery_;  // losses before this have been answered for
  uint64_t round_;     // with this acknowledged a round is over
  uint32_t in_flight_ = 0;
  uint32_t lost_ = 0;
  uint32_t early_ = 0;  // came, and not acknowledged for good
  uint32_t order_ = 0;
  uint32_t latest_order_ = 0;  // the latest transmission that is known to have come
  uint16_t backoff_ = 0;
  uint16_t reordering_ = 3;  // transmissions by which a datagram may be overtaken
  bool any_came_ = false;
  Time last_sent_{};
  Time last_news_{};
  Time waiting_since_{};
  Time outstanding_since_{};
  Time loss_time_ = Time::max();  // when the next one counts as lost
  uint64_t retransmitted_ = 0;
  RoundTrip round_trip_;
  Congestion congestion_;
};

}  // namespace diwarp::dgram
