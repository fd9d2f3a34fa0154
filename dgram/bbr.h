// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"
#include "dgram/congestion_controller.h"
#include "dgram/cubic.h"

namespace diwarp::dgram {

/// The highest value of the current and the previous period.
class RecentMax {
 public:
  void add(float value) { current_ = std::max(current_, value); }
  void begin_period() {
    previous_ = current_;
    current_ = 0;
  }
  float value() const { return std::max(current_, previous_); }

 private:
  float current_ = 0;
  float previous_ = 0;
};

/// The share of transmissions that is lost, of late.
class LossShare {
 public:
  /// So many more were lost, and so many came; those before count less by `fading`.
  void add(float lost, uint32_t came, float fading) {
    lost_ = lost_ * fading + lost;
    sent_ = sent_ * fading + lost + static_cast<float>(came);
  }
  float lost() const { return lost_; }
  float sent() const { return sent_; }
  float value() const { return sent_ > 0 ? lost_ / sent_ : 0; }
  /// If one more were lost.
  float upper() const { return (lost_ + 1) / (sent_ + 1); }

 private:
  float lost_ = 0;
  float sent_ = 0;
};

/// A model of the path after BBR (draft-cardwell-iccrg-bbr-congestion-control): the highest rate of
/// delivery and the shortest round trip of late. It paces at that rate, and keeps twice their
/// product in flight at most. What is lost while the round trip is short was lost by chance, and
/// changes nothing. What is lost while a queue stands has filled it: a CUBIC window, which grows
/// and shrinks beside the model by such losses alone, bounds what is in flight, so that flows of
/// TCP at the same queue get their share. Where the queue stands although this flow lets it drain,
/// others fill it, and the CUBIC window alone decides, or this flow would not get its own share.
/// The same where a queue is so short that it overflows before the round trip shows it, which is
/// told by what is lost when more than the rate is tried: there others would not get theirs.
class Bbr final : public CongestionController {
 public:
  /// Datagrams in flight at least.
  static constexpr uint32_t kLeastWindow = 4;
  /// A round trip that is longer than the shortest by a quarter, and by this, has a queue in it.
  static constexpr Duration kLeastQueue = std::chrono::milliseconds(2);
  /// The shortest round trip is forgotten after so long, and measured anew with little in flight.
  static constexpr Duration kShortestFor = std::chrono::seconds(10);
  /// Time and rounds of which a period of the rate's maximum has at least one each: as many rounds
  /// as a cycle of gains, and so long that one in which an end was not scheduled does not count.
  /// Rounds in which the application sends little do not count: they tell nothing of the rate.
  static constexpr Duration kLeastPeriod = std::chrono::milliseconds(100);
  static constexpr uint8_t kPeriodRounds = 8;
  /// Times in a row that the round trip is found longer with little in flight, until the path is
  /// taken for another and not for one with a queue that others fill.
  static constexpr uint8_t kMostQueuedProbes = 6;
  /// Acknowledgements that come in heaps allow more in flight, up to what the rate has in this
  /// time.
  static constexpr Duration kMostAggregation = std::chrono::milliseconds(100);

  enum class State : uint8_t {
    startup,     ///< the rate is doubled each round
    drain,       ///< the queue that this made is emptied
    probe_rate,  ///< the rate is kept, and a little more tried in turns
    probe_round_trip,
  };

  uint32_t window() const override;
  float pacing_rate() const override;
  void acknowledged(const AckNews& news, Time now) override;
  void lost(uint32_t count, Time sent, Time now) override;
  void spurious(uint32_t count) override;
  void collapsed(Time now) override;
  void idled() override;

  State state() const { return state_; }
  /// Datagrams a second that the path delivers; 0: not measured.
  float rate() const { return rate_.value(); }
  Duration shortest() const { return shortest_; }
  /// Whether others fill the queue.
  bool competes() const { return competes_; }
  /// Whether the queue is so short that it overflows before a round trip shows it.
  bool is_shallow() const { return shallow_; }
  /// Whether all round trips of this round and the one before had a queue in them.
  bool queue_stands() const {
    const Round& round = cubic_.round();
    return is_queued(std::min(round.shortest(), round.last_shortest()));
  }
  /// The share of transmissions that the path loses while no queue is filled.
  float random_loss() const { return random_loss_.value(); }

 private:
  bool is_queued(Duration round_trip) const;
  bool yields() const;
  bool is_beyond(float share) const;
  uint32_t bounded_window() const;
  uint32_t model_window() const;
  float in_flight_of(float gain) const;
  float gain() const;
  void enter(State state) { state_ = state; }
  void measure(const AckNews& news, Time now);
  void measure_rate(const RateSample& sample);
  void measure_round_trip(Duration sample, Time now);
  void measure_aggregation(uint32_t came, Time now);
  void begin_round(Time now);
  void end_period(Time now);
  void end_phase(Time now);
  void begin_cycle();
  void measure_loss(Time now);
  float lost_in_phase() const;
  void measure_shallow_queue(Time now);
  void look_for_shallow_queue(Time now);
  void overflowed(uint32_t count, Time sent, Time now);
  void look_for_full_pipe(const AckNews& news);
  void advance(const AckNews& news, bool round_began, Time now);
  void begin_probing_rate();
  void begin_probing_round_trip();
  void end_probing_round_trip(Time now);

  // There is one in each peer, so that its size counts.
  Cubic cubic_;  // tells the rounds, too
  RecentMax rate_;
  RecentMax aggregation_;  // datagrams
  Duration shortest_ = Duration::max();
  Time shortest_at_{};
  Duration period_shortest_ = Duration::max();  // of this period, or this probe
  Time period_began_{};
  Time aggregation_began_{};
  float smoothed_ = 0;        // the round trip, in seconds
  float full_rate_ = 0;       // the rate that startup has to surpass
  uint32_t aggregated_ = 0;   // datagrams that came since aggregation_began_
  uint32_t phase_came_ = 0;   // datagrams, in this phase
  uint32_t phase_lost_ = 0;   // transmissions
  uint32_t lost_ = 0;         // of late: halved with each cycle of gains
  uint32_t spurious_ = 0;     // the same, of those that came after all
  uint32_t overflowing_ = 0;  // the CUBIC window before it was reduced
  LossShare random_loss_;
  // Compared with that: while more than the rate is tried; of a short queue, since the CUBIC window
  // was reduced.
  LossShare excess_;
  bool competes_ : 1 = false;
  bool shallow_ : 1 = false;
  bool idled_ = false;           // since the last round trip was measured
  bool queue_filled_ = false;    // in this cycle of gains
  bool rate_measured_ = false;   // in this round, by a sample that the application did not limit
  uint8_t rounds_ : 4 = 0;       // of this period
  uint8_t rate_rounds_ : 4 = 0;  // of the rate's period: those that measured it
  uint8_t rounds_without_growth_ : 4 = 0;
  uint8_t queued_probes_ : 4 = 0;  // of the round trip, in a row
  uint8_t phase_ = 0;              // of the cycle of gains, or of the probe of the round trip
  State state_ = State::startup;
};

}  // namespace diwarp::dgram
