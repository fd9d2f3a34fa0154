// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/memory_budget.h"
#include "dgram/congestion.h"
#include "dgram/rd_header.h"
#include "dgram/transmit_ring.h"
#include "dgram/tx_tag.h"

namespace diwarp::dgram {

/// The sending half of an association: which datagrams are under way, which came, which are lost,
/// how many may go, and what stands for each number now (docs/reliable.md has the table). A number
/// stands for the same part of the same message for ever; once its message is given up, it is sent
/// again as a skip that names the message. Sequence numbers are 64 bits wide here and never wrap.
/// Time comes in as an argument. Memory grows with what is under way and is kept until
/// release_memory().
class Sender {
 public:
  /// A sequence number that none has.
  static constexpr uint64_t kNone = UINT64_MAX;

  /// `first`: above 0, so that there is one before it.
  explicit Sender(uint64_t first = 1)
      : first_(first),
        next_(first),
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
  const TxTag& tag(uint64_t sequence) const { return slot(sequence).tag; }
  /// Whether a skip stands for it now.
  bool is_skip(uint64_t sequence) const { return slot(sequence).has(TxSlot::given_up); }

  /// Takes memory for `count` more datagrams. False where it cannot be had. What the ring counts
  /// counts to `budget`, if there is one, which must outlive this.
  bool prepare(uint32_t count = 1, MemoryBudget* budget = nullptr);
  /// next() was sent; prepared for.
  void sent(const TxTag& tag, Time now);
  /// The same, but it was a skip: the message was given up before it was cut to its end.
  void sent_skip(const TxTag& tag, Time now);
  /// It was sent again.
  void resent(uint64_t sequence, Time now);

  // --- What the peer says.

  enum class News : uint8_t {
    invalid_ack,  ///< of what was never sent: the datagram is to be dropped
    stale,        ///< nothing new
    progress,     ///< something came
  };
  /// `map` null: none was sent.
  News acknowledged(uint32_t acknowledged, uint16_t window, const RdMap* map, Time now);
  /// The peer's window before it has said anything else.
  void open_window(uint16_t window) { edge_ = std::max(edge_, una_ + window); }
  struct Released {
    TxTag tag;
    bool given_up = false;  ///< its message was: the peer delivered it, or a skip
  };
  /// The first that is not acknowledged came, and the peer's application keeps it waiting; the peer
  /// had no room for it, so that it is sent again all the same.
  void first_waits(Time now) { advanced_ = now; }
  /// Hands out what is acknowledged for good, in order, each once.
  std::optional<Released> release();
  /// Whether a datagram with this number was sent not long ago: what a reset must repeat. The one
  /// before the first counts, for probes name it.
  bool was_sent(uint32_t sequence) const;

  // --- What stands for a number.

  /// The message ends: skips stand for its datagrams from now on.
  void give_up(const MessageName& message);
  /// The datagram is to be sent again at once, in whatever form, unless it came.
  void recall(uint64_t sequence);
  /// The first that is not acknowledged is to be sent again at once, even if it came.
  void recall_first();

  // --- Time.

  /// When on_deadline() is due; nothing: no news is awaited. `wanted`: more than what is under way
  /// is awaited of the peer (a response, a window). `longest`: between two attempts.
  std::optional<Time> deadline(bool wanted, Duration longest) const;
  /// The deadline has come. True: a probe is to be sent, for there is nothing to send again.
  bool on_deadline(Time now, bool wanted, Duration longest);
  /// The peer gave a sign of life, or something is awaited of it from now on.
  // guard(rd-read-behind-send): now; => now; if (idle()) backoff_ = 0;
  void heard(Time now) { waiting_since_ = now; }
  /// Something new came from the peer. Probes of a sender that is idle are frequent again; answers
  /// to them alone leave them as rare as they have become.
  void peer_advanced() {
    if (idle()) backoff_ = 0;
  }

  /// So long a round trip took that was none of a sequenced datagram's: that of an open.
  void measured(Duration round_trip) { round_trip_.add(round_trip); }

  // --- What there is.

  bool idle() const { return una_ == next_; }
  uint64_t outstanding() const { return next_ - una_; }
  /// Under way, as far as is known.
  uint32_t in_flight() const { return in_flight_; }
  /// The first datagram that is outstanding, and did not even come early, has been that since this
  /// time; nothing where there is none.
  std::optional<Time> stuck_since() const;
  /// Not before this time was anything of what is outstanding sent.
  Time outstanding_since() const { return outstanding_since_; }
  uint64_t retransmitted() const { return retransmitted_; }
  uint32_t congestion_window() const { return congestion_.window(); }
  const RoundTrip& round_trip() const { return round_trip_; }
  /// Where nothing is outstanding or unreleased.
  void release_memory();
  /// Whether release_memory() would give some back.
  bool has_spare_memory() const { return ring_.capacity() != 0 && released_ == next_; }
  /// When something sequenced, or a probe, was sent last.
  Time last_sent() const { return last_sent_; }

 private:
  struct Arrivals {
    uint32_t count = 0;
    uint32_t order = 0;              // of the latest transmission among them
    std::optional<Duration> sample;  // of that, where it was the only one of its datagram
  };

  TxSlot& slot(uint64_t sequence) const { return ring_.at(sequence); }
  bool acknowledges_unsent(uint64_t cumulative, const RdMap* map) const;
  void arrived(TxSlot& slot, Time now, Arrivals& arrivals);
  bool is_of_first_transmission(const TxSlot& slot, Time now) const;
  void take_map(uint64_t cumulative, const RdMap& map, Time now, Arrivals& arrivals);
  void account(const Arrivals& arrivals, bool limited, Time now);
  void detect_losses(Time now);
  bool check_lost(const TxSlot& slot, Time now);
  void lose(TxSlot& slot);
  void enter_recovery(uint64_t sequence, Time now);
  void transmit(TxSlot& slot, Time now);
  Duration backed_off(Duration longest) const;

  TransmitRing ring_;
  uint64_t first_;
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
  uint8_t reordering_ = 3;  // transmissions by which a datagram may be overtaken
  bool any_came_ = false;
  Time last_sent_{};
  Time last_news_{};
  Time waiting_since_{};
  Time outstanding_since_{};
  Time advanced_{};  // when the first that is outstanding became that, or was last said to wait
  Time loss_time_ = Time::max();  // when the next one counts as lost
  uint64_t retransmitted_ = 0;
  RoundTrip round_trip_;
  Congestion congestion_;
};

}  // namespace diwarp::dgram
