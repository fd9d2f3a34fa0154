// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "dgram/black_hole_detector.h"
#include "dgram/congestion.h"
#include "dgram/delivery_rate.h"
#include "dgram/loss_detector.h"
#include "dgram/pacer.h"
#include "dgram/probe_timer.h"
#include "dgram/rd_header.h"
#include "dgram/round_trip.h"
#include "dgram/scoreboard.h"
#include "dgram/sequence_window.h"
#include "dgram/transmit_ring.h"
#include "dgram/tx_tag.h"

namespace diwarp::dgram {

/// The sending half of an association: which datagrams may go, which are to be sent again and when,
/// and what follows from what the peer says (docs/reliable.md has the table). Its parts keep what
/// became of each datagram (Scoreboard), which of them count as lost (LossDetector), how long to
/// wait for news (ProbeTimer), how many may be under way (CongestionController) and when they may
/// go (Pacer). Each association has one of its own. Time comes in as an argument.
class Sender {
 public:
  /// `first`: above 0, so that there is one before it. `window`: the peer's, before it has said
  /// anything else.
  explicit Sender(uint64_t first = 1, uint16_t window = 0,
                  CongestionControl control = CongestionControl::bbr)
      : scoreboard_(first, window), congestion_(control) {
    follow_controller();
  }

  /// The owner prepares and releases memory there, gives up messages, recalls datagrams and
  /// releases them.
  Scoreboard& scoreboard() { return scoreboard_; }
  const Scoreboard& scoreboard() const { return scoreboard_; }
  const SequenceWindow& window() const { return scoreboard_.window(); }
  const CongestionController& congestion() const { return *congestion_; }
  /// The owner adds the round trip of an open.
  RoundTrip& round_trip() { return round_trip_; }
  const RoundTrip& round_trip() const { return round_trip_; }
  /// The owner tells it when the peer gives a sign of life.
  ProbeTimer& timer() { return timer_; }
  const ProbeTimer& timer() const { return timer_; }

  // --- What to send.

  /// A burst is decided on from now on.
  void begin_burst(Time now) { quota_ = pacer_.quota(now); }
  /// Whether the peer's window, the congestion window and the pacer let a new datagram go, `ahead`
  /// other new ones and `again` old ones having been decided on before.
  bool may_send(uint32_t ahead = 0, uint32_t again = 0) const;
  /// The first datagram that is to be sent again, and the next one after `after`, `ahead` others
  /// having been decided on before; Scoreboard::kNone where none is, or the congestion window is in
  /// use.
  uint64_t first_lost(uint32_t ahead = 0) const { return scoreboard_.first_lost(!has_room(ahead)); }
  uint64_t next_lost(uint64_t after, uint32_t ahead) const {
    return scoreboard_.next_lost(after, !has_room(ahead));
  }
  /// All of a burst was decided on that may go, `ahead` new datagrams and `again` old ones. `more`:
  /// of what there is to send not all may. The deadline tells when the pacer lets the next ones go.
  void end_burst(uint32_t ahead, uint32_t again, bool more);
  /// Whether the pacer holds some back: deadline() tells for how long.
  bool waits_for_pacer() const { return paced_; }

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
  static constexpr Duration kClockJump = std::chrono::milliseconds(100);

  struct Arrivals {
    uint32_t count = 0;
    uint32_t spurious = 0;  // of these: counted as lost
    TxSlot latest;          // of the latest transmission among them
  };

  /// Whether the peer's window, and memory, let one more go.
  bool is_open(uint32_t ahead) const {
    return window().is_open(ahead) && window().unreleased() + ahead < SequenceWindow::kCapacity;
  }
  bool has_room(uint32_t ahead) const {
    return ahead < quota_ && scoreboard_.in_flight() + ahead < window_;
  }
  /// The controller has changed its mind.
  void follow_controller() {
    window_ = congestion_->window();
    pacer_.set_rate(congestion_->pacing_rate());
  }
  void add(const TxTag& tag, uint8_t flags, Time now);
  void transmitted(TxSlot& slot, bool first, Time now);
  void arrived(uint64_t sequence, const TxSlot& slot, Time now, Arrivals& arrivals);
  void account(const Arrivals& arrivals, Time now);
  void detect_losses(Time now);
  [[gnu::noinline]] News take_acknowledgement(uint32_t acknowledged, uint16_t window,
                                              const RdMap* map, Time now);
  /// Whether the clock went back. By less than that nothing is held up for longer than a timeout
  /// does.
  bool has_jumped(Time now) const { return now + kClockJump < timer_.last_activity(); }
  void notice_jump(Time now);
  std::optional<Time> news_deadline(bool wanted, Duration longest) const;

  Scoreboard scoreboard_;
  uint32_t window_ = 0;            // the controller's
  uint64_t highest_ = 0;           // that came
  uint32_t quota_ = UINT32_MAX;    // datagrams that the pacer lets go in this burst
  Time round_lost_ = Time::min();  // losses of what was sent before are of one round
  bool collapsed_ = false;         // since the last news
  bool paced_ = false;             // what is to be sent waits for the pacer
  LossDetector losses_;
  ProbeTimer timer_;
  Time outstanding_since_{};
  Time advanced_{};  // when the first that is outstanding became that, or was last said to wait
  uint64_t retransmitted_ = 0;
  BlackHoleDetector black_hole_;
  RoundTrip round_trip_;
  DeliveryRate delivery_rate_;
  Pacer pacer_;
  Congestion congestion_;
};

}  // namespace diwarp::dgram
