// SPDX-License-Identifier: Apache-2.0
#include "dgram/congestion.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace diwarp::dgram {
namespace {

/// A round trip that took seconds must not hold up the repair of a loss.
constexpr Duration kMaxReordering = std::chrono::seconds(1);

using std::chrono::milliseconds;

// Below that, a scheduler's turn would look like a loss.
constexpr Duration kGranularity = milliseconds(2);
// Until a round trip was measured (RFC 6298 section 2.1 has a second; the handshake measures one).
constexpr Duration kUnmeasured = milliseconds(200);

constexpr double kCubic = 0.4;                                   // C, RFC 9438 section 5
constexpr double kBeta = 0.7;                                    // section 4.6
constexpr double kFriendlyGain = 3 * (1 - kBeta) / (1 + kBeta);  // section 4.3

// RFC 9406 section 4.3.
constexpr Duration kShortestRise = milliseconds(4);
constexpr Duration kLongestRise = milliseconds(16);
constexpr uint16_t kMinSamples = 8;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void RoundTrip::add(Duration sample) {
  sample = std::max(sample, Duration(1));
  latest_ = sample;
  shortest_ = std::min(shortest_, sample);
  if (!measured()) {
    smoothed_ = sample;
    deviation_ = sample / 2;
    return;
  }
  const Duration error = sample > smoothed_ ? sample - smoothed_ : smoothed_ - sample;
  deviation_ = (3 * deviation_ + error) / 4;
  smoothed_ = (7 * smoothed_ + sample) / 8;
}

Duration RoundTrip::timeout() const {
  return measured() ? smoothed_ + std::max(4 * deviation_, kGranularity) : kUnmeasured;
}

Duration RoundTrip::reordering() const {
  const Duration longer = std::max(smoothed_, latest_);
  return std::min<Duration>(std::max(longer + longer / 8, kGranularity / 2), kMaxReordering);
}

void Congestion::acknowledged(uint32_t count, bool limited, Duration round_trip, Time now) {
  if (!limited) {
    // Growth counts only the time in which the window was in use.
    if (in_epoch_) epoch_ += now - last_growth_;
  } else if (slow_start()) {
    window_ = std::min(window_ + count, kMaxWindow);
  } else {
    grow_cubic(count, round_trip, now);
  }
  last_growth_ = now;
}

void Congestion::begin_epoch(Time now) {
  in_epoch_ = true;
  epoch_ = now;
  friendly_ = window_;
  highest_ = std::max(highest_, window_);
  inflection_ = std::cbrt((highest_ - window_) / kCubic);
}

/// RFC 9438 sections 4.2 to 4.5.
void Congestion::grow_cubic(uint32_t count, Duration round_trip, Time now) {
  if (!in_epoch_) begin_epoch(now);
  const auto cubic = [this](double time) {
    const double distance = time - inflection_;
    return kCubic * distance * distance * distance + highest_;
  };
  const double time = seconds(now - epoch_);
  const double acked = count;
  friendly_ += (friendly_ < before_ ? kFriendlyGain : 1.0) * acked / window_;
  const double target = std::clamp(cubic(time + seconds(round_trip)), window_, 1.5 * window_);
  window_ += (target - window_) / window_ * acked;
  if (cubic(time) < friendly_) window_ = std::max(window_, friendly_);
  window_ = std::min(window_, kMaxWindow);
}

void Congestion::sampled(Duration round_trip) {
  round_shortest_ = std::min(round_shortest_, round_trip);
  if (samples_ < kMinSamples) ++samples_;
  if (!slow_start() || samples_ < kMinSamples || last_round_shortest_ == Duration::max()) return;
  const Duration rise = std::clamp(last_round_shortest_ / 8, kShortestRise, kLongestRise);
  if (round_shortest_ >= last_round_shortest_ + rise) threshold_ = window_;
}

void Congestion::round_over() {
  if (samples_ != 0) last_round_shortest_ = round_shortest_;
  round_shortest_ = Duration::max();
  samples_ = 0;
}

void Congestion::reduce() {
  // Fast convergence, RFC 9438 section 4.7.
  highest_ = window_ < highest_ ? window_ * (1 + kBeta) / 2 : window_;
  before_ = window_;
  threshold_ = std::max(window_ * kBeta, kMinWindow);
  in_epoch_ = false;
}

void Congestion::lost(Time now) {
  reduce();
  window_ = threshold_;
  last_growth_ = now;
}

void Congestion::collapsed(Time now) {
  if (window_ <= kMinWindow) return;
  reduce();
  window_ = kMinWindow;
  last_growth_ = now;
}

void Congestion::idled() {
  threshold_ = std::max(threshold_, window_ * 3 / 4);  // RFC 7661's way of remembering
  window_ = std::min(window_, kInitialWindow);
  in_epoch_ = false;
}

}  // namespace diwarp::dgram
