// SPDX-License-Identifier: Apache-2.0
#include "dgram/bbr.h"

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

namespace diwarp::dgram {
namespace {

// The names and values are those of the draft.
constexpr float kStartupGain = 2.77F;  // 4 ln 2: it doubles the rate each round
constexpr float kDrainGain = 1 / kStartupGain;
constexpr float kWindowGain = 2;
constexpr float kBoundGain = 1.25F;  // of the CUBIC window, at least
constexpr std::array<float, Bbr::kPeriodRounds> kCycle = {1.25F, 0.75F, 1, 1, 1, 1, 1, 1};
constexpr uint8_t kMorePhase = 1;       // see look_for_shallow_queue()
constexpr uint8_t kMeasuringPhase = 2;  // see measure_loss()
constexpr uint8_t kFirstPhase = 3;
constexpr float kGrowth = 1.25F;  // of the rate, each round, while startup goes on
constexpr uint8_t kRoundsToFull = 3;
constexpr int kMostLossPercent = 50;  // that is made up for
// What tells a short queue from chance: more is lost when more is tried, by this share and by so
// many deviations; and once that is known, in one round by so many.
constexpr float kLossOfQueue = 0.01F;
constexpr float kSureDeviations = 4;
constexpr float kDeviations = 3;
// Of the window that overflowed: with less the queue is empty most of the time. CUBIC goes on with
// 0.7 of it.
constexpr float kDrained = 0.85F;
// What becomes of the weight of what was measured before, in each cycle or round.
constexpr float kCycleFading = 0.7F;
constexpr float kRoundFading = 0.9F;
// Some bursts are always at one of the ends (send_quantum).
constexpr float kBursts = 2;
constexpr float kMostBurst = 64;
constexpr float kBurstSeconds = 0.001F;

/// Than chance explains.
bool is_more(float lost, float expected) {
  return lost > expected + kDeviations * std::sqrt(expected);
}

float seconds(Duration duration) { return std::chrono::duration<float>(duration).count(); }

}  // namespace

float Bbr::gain() const {
  switch (state_) {
    case State::startup:
      return kStartupGain;
    case State::drain:
      return kDrainGain;
    case State::probe_rate:
      return kCycle[phase_];
    case State::probe_round_trip:
      return 1;
  }
  return 1;
}

/// Of the product of rate and shortest round trip. A peer that acknowledges what it has not got can
/// make the rate anything.
float Bbr::in_flight_of(float gain) const {
  return std::min(gain * rate() * seconds(shortest_), float{kMaxWindow});
}

/// What the model allows.
uint32_t Bbr::model_window() const {
  const float burst = std::clamp(rate() * kBurstSeconds, 1.0F, kMostBurst);
  const float wanted = in_flight_of(kWindowGain) + aggregation_.value() + kBursts * burst;
  const uint32_t least = state_ == State::startup ? kInitialWindow : 0;
  return std::max(static_cast<uint32_t>(std::min(wanted, float{kMaxWindow})), least);
}

uint32_t Bbr::window() const { return std::max(bounded_window(), kLeastWindow); }

uint32_t Bbr::bounded_window() const {
  const bool measured = rate() > 0 && shortest_ != Duration::max();
  if (!measured || (yields() && competes_)) return cubic_.window();
  // A queue is empty when no more is in flight than the product, and less than that lowers the
  // rate, which is only right where the CUBIC window is to have its way.
  const uint32_t least = yields() ? 0 : static_cast<uint32_t>(in_flight_of(kBoundGain));
  const uint32_t bound = std::max(cubic_.window(), least);
  if (state_ == State::probe_round_trip)
    return std::min(bound, static_cast<uint32_t>(in_flight_of(0.5F)));
  return std::min(bound, model_window());
}

float Bbr::pacing_rate() const {
  if (rate() <= 0) return 0;
  const float least = state_ == State::startup && shortest_ != Duration::max()
                          ? kInitialWindow / seconds(shortest_)
                          : 0;
  // The window rules, and spreads its datagrams over a little less than a round trip.
  if (yields() && smoothed_ > 0)
    return kCycle[0] * std::max(rate(), static_cast<float>(window()) / smoothed_);
  // What empties the queue does not make up for losses, or flows that fill it together would each
  // take the losses of all for chance, for ever.
  const bool drains = gain() < 1;
  const float lost = drains ? 0 : std::min(random_loss(), kMostLossPercent / 100.0F);
  return gain() * std::max(rate(), least) / (1 - lost);
}

bool Bbr::is_queued(Duration round_trip) const {
  if (round_trip == Duration::max() || shortest_ == Duration::max()) return false;
  return round_trip > shortest_ + std::max(shortest_ / 4, kLeastQueue);
}

/// Whether the CUBIC window decides, and not the model.
bool Bbr::yields() const { return state_ == State::probe_rate && (competes_ || is_shallow()); }

// --- What an acknowledgement tells.

void Bbr::acknowledged(const AckNews& news, Time now) {
  cubic_.acknowledged(news, now);
  // The clock may have gone back.
  period_began_ = std::min(period_began_, now);
  shortest_at_ = std::min(shortest_at_, now);
  const bool round_began = cubic_.round().began();
  if (round_began) begin_round(now);
  measure(news, now);
  if (round_began && state_ == State::startup) look_for_full_pipe(news);
  advance(news, round_began, now);
}

void Bbr::begin_round(Time now) {
  if (rounds_ < kPeriodRounds) ++rounds_;
  if (std::exchange(rate_measured_, false) && rate_rounds_ < kPeriodRounds) ++rate_rounds_;
  if (rounds_ == kPeriodRounds && now - period_began_ >= kLeastPeriod) end_period(now);
}

void Bbr::end_period(Time now) {
  rounds_ = 0;
  period_began_ = now;
  if (rate_rounds_ == kPeriodRounds) {
    rate_rounds_ = 0;
    rate_.begin_period();
  }
  aggregation_.begin_period();
  if (state_ != State::probe_rate) return;
  competes_ = is_queued(period_shortest_);
  period_shortest_ = Duration::max();
}

void Bbr::measure(const AckNews& news, Time now) {
  smoothed_ = seconds(news.smoothed);
  if (news.sample != Duration::zero()) measure_round_trip(news.sample, now);
  measure_rate(news.rate);
  if (state_ != State::startup) measure_aggregation(news.came, now);
  phase_came_ += news.came;
}

void Bbr::measure_rate(const RateSample& sample) {
  // A rate that the application limited is at least that of the path.
  if (!sample.app_limited || sample.rate > rate()) rate_.add(sample.rate);
  if (!sample.app_limited && sample.rate > 0) rate_measured_ = true;
}

void Bbr::measure_round_trip(Duration sample, Time now) {
  period_shortest_ = std::min(period_shortest_, sample);
  const bool first = std::exchange(idled_, false);  // what was measured grew no older in silence
  if (sample <= shortest_ || first) {
    shortest_ = std::min(shortest_, sample);
    shortest_at_ = now;
  } else if (state_ == State::probe_rate && now - shortest_at_ > kShortestFor) {
    begin_probing_round_trip();
  }
}

/// What came beyond what the rate has in that time: acknowledgements come in heaps where an end or
/// the network gathers datagrams, and more has to be in flight to bridge the time between two.
void Bbr::measure_aggregation(uint32_t came, Time now) {
  const float expected = rate() * seconds(now - aggregation_began_);
  const auto aggregated = static_cast<float>(aggregated_);
  if (aggregated <= expected || expected < 0 || aggregated > rate() * seconds(kMostAggregation)) {
    aggregation_began_ = now;
    aggregated_ = 0;
  }
  aggregated_ += came;
  const float beyond = static_cast<float>(aggregated_) - rate() * seconds(now - aggregation_began_);
  aggregation_.add(std::clamp(beyond, 0.0F, static_cast<float>(window())));
}

// --- States.

void Bbr::look_for_full_pipe(const AckNews& news) {
  if (is_queued(cubic_.round().last_shortest())) return enter(State::drain);
  if (news.rate.app_limited) return;
  if (rate() >= full_rate_ * kGrowth) {
    full_rate_ = rate();
    rounds_without_growth_ = 0;
  } else if (++rounds_without_growth_ >= kRoundsToFull) {
    enter(State::drain);
  }
}

void Bbr::advance(const AckNews& news, bool round_began, Time now) {
  const auto in_flight = static_cast<float>(news.in_flight);
  switch (state_) {
    case State::startup:
      return;
    case State::drain:
      if (in_flight <= std::max(in_flight_of(1), float{kLeastWindow})) begin_probing_rate();
      return;
    case State::probe_rate:
      if (round_began) end_phase(now);
      return;
    case State::probe_round_trip:
      // The first of these rounds sends what the second one measures.
      if (!round_began || news.in_flight > window()) return;
      if (phase_++ == 0)
        period_shortest_ = Duration::max();
      else
        end_probing_round_trip(now);
      return;
  }
}

/// In each phase it is known what became of what was sent in the one before.
void Bbr::end_phase(Time now) {
  if (is_shallow()) {
    measure_shallow_queue(now);
  } else if (!queue_filled_ && !competes_) {
    // Where a queue overflowed, it may have lost more than showed, which was not by chance.
    measure_loss(now);
  }
  phase_ = static_cast<uint8_t>((phase_ + 1) % kCycle.size());
  if (phase_ == 0) begin_cycle();
  phase_came_ = phase_lost_ = 0;
}

void Bbr::begin_cycle() {
  queue_filled_ = false;
  lost_ /= 2;
  spurious_ /= 2;
}

/// That something came after all may be known only many rounds later, so the share of those is that
/// of late.
float Bbr::lost_in_phase() const {
  const auto counted = static_cast<float>(std::max(lost_, uint32_t{1}));
  const float spurious = std::min(static_cast<float>(spurious_) / counted, 1.0F);
  return static_cast<float>(phase_lost_) * (1 - spurious);
}

/// What is lost of what was sent in the round that empties the queue is lost by chance. The rate is
/// one of delivery, so what is sent to keep it up is more.
void Bbr::measure_loss(Time now) {
  if (phase_ == kMorePhase) excess_.add(lost_in_phase(), phase_came_, kCycleFading);
  if (phase_ != kMeasuringPhase) return;
  random_loss_.add(lost_in_phase(), phase_came_, kCycleFading);
  look_for_shallow_queue(now);
}

/// What is lost with a window that is well below the one that overflowed is lost by chance, but not
/// where it is much at once: others overflow the queue, too. A little more than that in each round
/// is found after some rounds.
void Bbr::measure_shallow_queue(Time now) {
  const bool drained =
      static_cast<float>(cubic_.window()) < kDrained * static_cast<float>(overflowing_);
  const float lost = lost_in_phase();
  if (drained && !is_beyond(random_loss_.upper()))
    random_loss_.add(lost, phase_came_, kRoundFading);
  excess_.add(lost, phase_came_, 1);
  if (is_more(excess_.lost(), random_loss_.upper() * excess_.sent()))
    overflowed(phase_lost_, now, now);
  // Where all that the model allows is in flight, or a queue shows, it is not short.
  shallow_ = !is_queued(cubic_.round().last_shortest()) && cubic_.window() <= model_window();
  if (!shallow_) excess_ = {};
}

/// A short queue overflows before the round trip shows it: where more is tried, more is lost than
/// by chance. A flow of TCP at that queue takes each of these losses for its own, so the CUBIC
/// window decides here, too, until a queue shows.
void Bbr::look_for_shallow_queue(Time now) {
  const float more = excess_.value(), random = random_loss();
  if (more <= random + kLossOfQueue) return;
  const float variance = more * (1 - more) / excess_.sent() +
                         random * (1 - random) / std::max(random_loss_.sent(), 1.0F);
  if (more <= random + kLossOfQueue + kSureDeviations * std::sqrt(variance)) return;
  shallow_ = true;
  cubic_.fit(static_cast<uint32_t>(in_flight_of(kBoundGain)));
  overflowed(phase_lost_, now, now);
}

void Bbr::overflowed(uint32_t count, Time sent, Time now) {
  const uint32_t before = cubic_.window();
  cubic_.lost(count, sent, now);
  if (cubic_.window() < before) overflowing_ = before;
  excess_ = {};
}

void Bbr::begin_probing_rate() {
  enter(State::probe_rate);
  phase_ = kFirstPhase;
}

void Bbr::begin_probing_round_trip() {
  enter(State::probe_round_trip);
  phase_ = 0;
}

/// With little of this flow in flight the round trip is that of the path, with the queue of others.
void Bbr::end_probing_round_trip(Time now) {
  shortest_at_ = now;
  competes_ = is_queued(period_shortest_) && ++queued_probes_ < kMostQueuedProbes;
  if (!competes_) {
    if (period_shortest_ != Duration::max()) shortest_ = period_shortest_;
    queued_probes_ = 0;
  }
  period_shortest_ = Duration::max();
  begin_probing_rate();
}

// --- What is lost.

/// Whether more was lost in this phase than such a share explains.
bool Bbr::is_beyond(float share) const {
  const auto sent = static_cast<float>(std::max(phase_came_ + phase_lost_, window()));
  return is_more(lost_in_phase(), share * sent);
}

void Bbr::lost(uint32_t count, Time sent, Time now) {
  if (queue_stands()) {
    queue_filled_ = true;
    if (state_ == State::startup) enter(State::drain);
  } else {
    phase_lost_ += count;
    lost_ += count;
    if (!is_shallow() || !is_beyond(random_loss())) return;
  }
  overflowed(count, sent, now);
}

void Bbr::spurious(uint32_t count) { spurious_ += count; }

void Bbr::collapsed(Time now) {
  cubic_.collapsed(now);
  rate_ = aggregation_ = {};
  full_rate_ = 0;
  rounds_without_growth_ = 0;
  enter(State::startup);
}

void Bbr::idled() {
  cubic_.idled();
  aggregated_ = 0;
  competes_ = false;  // others may have gone, or come
  period_shortest_ = Duration::max();
  idled_ = true;
}

}  // namespace diwarp::dgram
