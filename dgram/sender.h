// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "dgram/black_hole_detector.h"
#include "dgram/congestion.h"
#include "dgram/loss_detector.h"
#include "dgram/probe_timer.h"
#include "dgram/rd_header.h"
#include "dgram/scoreboard.h"
#include "dgram/sequence_window.h"
#include "dgram/transmit_ring.h"
#include "dgram/tx_tag.h"

namespace diwarp::dgram {

/// The sending half of an association: which datagrams may go, which are to be sent again and when,
/// and what follows from what the peer says (docs/reliable.md has the table). Its parts keep what
/// became of each datagram (Scoreboard), which of them count as lost (LossDetector), how long to
/// wait for news (ProbeTimer) and how many may be under way (Congestion). Each association has one
/// of its own. Time comes in as an argument.
class Sender {
 public:
  /// `first`: above 0, so that there is one before it. `window`: the peer's, before it has said
  /// anything else.
  explicit Sender(uint64_t first = 1, uint16_t window = 0)
      : scoreboard_(first, window), recovery_(first), round_(first) {}

  /// The owner prepares and releases memory there, gives up messages, recalls datagrams and
  /// releases them.
  Scoreboard& scoreboard() { return scoreboard_; }
  const Scoreboard& scoreboard() const { return scoreboard_; }
  const SequenceWindow& window() const { return scoreboard_.window(); }
  const Congestion& congestion() const { return congestion_; }
  /// The owner adds the round trip of an open.
  RoundTrip& round_trip() { return round_trip_; }
  const RoundTrip& round_trip() const { return round_trip_; }
  /// The owner tells it when the peer gives a sign of life.
  ProbeTimer& timer() { return timer_; }
  const ProbeTimer& timer() const { return timer_; }

  // --- What to send.

  /// Whether the peer's window and the congestion window let a new datagram go, `ahead` other new
  /// ones and `again` old ones having been decided on before.
  bool may_send(uint32_t ahead = 0, uint32_t again = 0) const;
  /// The first datagram from `from` on that is to be sent again, `ahead` others having been decided
  /// on before; Scoreboard::kNone where none is, or the congestion window is in use.
  uint64_t next_lost(uint64_t from, uint32_t ahead = 0) const;

  /// The next number was sent; the scoreboard is prepared for it.
  void sent(const TxTag& tag, Time now) { add(tag, 0, now); }
  /// The same, but it was a skip: the message was given up before it was cut to its end.
  void sent_skip(const TxTag& tag, Time now) { add(tag, TxSlot::given_up, now); }
  /// It was sent again.
  void resent(uint64_t sequence, Time now);
  uint64_t retransmitted() const { return retransmitted_; }

  // --- What the peer says.

  enum class News : uint8_t {
    invalid_ack,  ///< of what was never sent: the datagram is to be dropped
    stale,        ///< nothing new
    progress,     ///< something came
  };
  /// `map` null: none was sent.
  News acknowledged(uint32_t acknowledged, uint16_t window, const RdMap* map, Time now);
  /// The first that is not acknowledged came, and the peer's application keeps it waiting; the peer
  /// had no room for it, so that it is sent again all the same.
  void first_waits(Time now) { advanced_ = now; }
  /// Something new came from the peer. Probes of a sender that is idle are frequent again; answers
  /// to them alone leave them as rare as they have become.
  void peer_advanced() {
    if (window().idle()) timer_.reset_backoff();
  }

  /// A probe was sent; the peer answered what was sent last with an acknowledgement alone.
  void probe_sent() { black_hole_.probe_sent(); }
  void acknowledged_alone() { black_hole_.acknowledged_alone(); }
  /// The payload of datagrams that vanish while smaller ones get through, in bytes; each time that
  /// this is found, once.
  std::optional<uint32_t> take_black_hole() { return black_hole_.take(); }

  // --- Time.

  /// When on_deadline() is due; nothing: no news is awaited. `wanted`: more than what is under way
  /// is awaited of the peer (a response, a window). `longest`: between two attempts.
  std::optional<Time> deadline(bool wanted, Duration longest) const;
  /// The deadline has come. True: a probe is to be sent, for there is nothing to send again, or
  /// what is sent again may be too long for the path.
  bool on_deadline(Time now, bool wanted, Duration longest);
  /// The first datagram that is outstanding, and did not even come early, has been that since this
  /// time; nothing where there is none.
  std::optional<Time> stuck_since() const;
  /// Not before this time was anything of what is outstanding sent.
  Time outstanding_since() const { return outstanding_since_; }

 private:
  struct Arrivals {
    uint32_t count = 0;
    uint32_t order = 0;              // of the latest transmission among them
    std::optional<Duration> sample;  // of that, where it was the only one of its datagram
  };

  void add(const TxTag& tag, uint8_t flags, Time now);
  void arrived(const TxSlot& slot, Time now, Arrivals& arrivals);
  void account(const Arrivals& arrivals, bool limited, Time now);
  void detect_losses(Time now);

  Scoreboard scoreboard_;
  uint64_t recovery_;  // losses before this have been answered for
  uint64_t round_;     // with this acknowledged a round is over
  LossDetector losses_;
  ProbeTimer timer_;
  Time outstanding_since_{};
  Time advanced_{};  // when the first that is outstanding became that, or was last said to wait
  uint64_t retransmitted_ = 0;
  BlackHoleDetector black_hole_;
  RoundTrip round_trip_;
  Congestion congestion_;
};

}  // namespace diwarp::dgram
