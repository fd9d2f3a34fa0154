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

/// A model of the path after BBR (draft-cardwell-iccrg-bbr-congestion-control): the highest rate of
/// delivery and the shortest round trip of late. It paces at that rate, and keeps twice their
/// product in flight at most. What is lost while the round trip is short was lost by chance, and
/// changes nothing. What is lost while a queue stands has filled it: a CUBIC window, which grows
/// and shrinks beside the model by such losses alone, bounds what is in flight, so that flows of
/// TCP at the same queue get their share. Where the queue stands although this flow lets it drain,
/// others fill it, and the CUBIC window alone decides, or this flow would not get its own share.
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
  /// Whether all round trips of this round and the one before had a queue in them.
  bool queue_stands() const {
    const Round& round = cubic_.round();
    return is_queued(std::min(round.shortest(), round.last_shortest()));
  }
  /// The share of transmissions that the path loses while no queue is filled.
  float random_loss() const { return random_loss_; }

 private:
  bool is_queued(Duration round_trip) const;
  float in_flight_of(float gain) const;
  float gain() const;
  void enter(State state) { state_ = state; }
  void measure(const AckNews& news, Time now);
  void measure_rate(const RateSample& sample);
  void measure_round_trip(Duration sample, Time now);
  void measure_aggregation(uint32_t came, Time now);
  void begin_round(Time now);
  void end_period(Time now);
  void end_phase();
  void begin_cycle();
  void measure_loss();
  void look_for_full_pipe(const AckNews& news);
  void advance(const AckNews& news, bool round_began, Time now);
  void begin_probing_rate();
  void begin_probing_round_trip();
  void end_probing_round_trip(Time now);

  Cubic cubic_;  // tells the rounds, too
  RecentMax rate_;
  RecentMax aggregation_;  // datagrams
  Duration shortest_ = Duration::max();
  Time shortest_at_{};
  Duration period_shortest_ = Duration::max();  // of this period, or this probe
  Duration smoothed_{0};
  Time period_began_{};
  Time aggregation_began_{};
  uint32_t aggregated_ = 0;  // datagrams that came since then
  uint32_t phase_came_ = 0;  // datagrams, in this phase
  uint32_t phase_lost_ = 0;  // transmissions
  uint32_t lost_ = 0;        // of late: halved with each cycle of gains
  uint32_t spurious_ = 0;    // the same, of those that came after all
  float random_loss_ = 0;
  float full_rate_ = 0;  // the rate that startup has to surpass
  bool competes_ = false;
  bool queue_filled_ = false;   // in this cycle of gains
  uint8_t queued_probes_ = 0;   // of the round trip, in a row
  uint8_t rounds_ = 0;          // of this period
  uint8_t rate_rounds_ = 0;     // of the rate's period: those that measured it
  bool rate_measured_ = false;  // in this round, by a sample that the application did not limit
  uint8_t rounds_without_growth_ = 0;
  uint8_t phase_ = 0;  // of the cycle of gains, or of the probe of the round trip
  State state_ = State::startup;
};

}  // namespace diwarp::dgram
