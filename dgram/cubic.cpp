// SPDX-License-Identifier: Apache-2.0
#include "dgram/cubic.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace diwarp::dgram {
namespace {

using std::chrono::milliseconds;

constexpr double kCubic = 0.4;                                   // C, RFC 9438 section 5
constexpr double kBeta = 0.7;                                    // section 4.6
constexpr double kFriendlyGain = 3 * (1 - kBeta) / (1 + kBeta);  // section 4.3

// RFC 9406 section 4.3.
constexpr Duration kShortestRise = milliseconds(4);
constexpr Duration kLongestRise = milliseconds(16);
constexpr uint16_t kMinSamples = 8;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

void Cubic::acknowledged(const AckNews& news, Time now) {
  if (round_.update(news)) samples_ = 0;
  if (news.sample != Duration::zero()) look_for_rise();
  reduced_ = std::min(reduced_, now);  // the clock may have gone back
  // Nothing grows until something came that was sent after the last reduction.
  if (news.sent > reduced_) grow(news, now);
}

void Cubic::grow(const AckNews& news, Time now) {
  const uint32_t in_flight = news.in_flight + news.came;
  const bool limited = in_flight * (slow_start() ? 2 : 1) + 1 >= window();
  if (!limited) {
    // Growth counts only the time in which the window was in use.
    if (in_epoch_) epoch_ += now - last_growth_;
  } else if (slow_start()) {
    window_ = std::min<double>(window_ + news.came, kMaxWindow);
  } else {
    grow_cubic(news.came, news.smoothed, now);
  }
  last_growth_ = now;
}

void Cubic::begin_epoch(Time now) {
  in_epoch_ = true;
  epoch_ = now;
  friendly_ = window_;
  highest_ = std::max(highest_, window_);
  inflection_ = std::cbrt((highest_ - window_) / kCubic);
}

/// RFC 9438 sections 4.2 to 4.5.
void Cubic::grow_cubic(uint32_t count, Duration round_trip, Time now) {
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
  window_ = std::min<double>(window_, kMaxWindow);
}

/// Of the round trip, with another sample of it.
void Cubic::look_for_rise() {
  if (samples_ < kMinSamples) ++samples_;
  const Duration before = round_.last_shortest();
  if (!slow_start() || samples_ < kMinSamples || before == Duration::max()) return;
  const Duration rise = std::clamp(before / 8, kShortestRise, kLongestRise);
  if (round_.shortest() >= before + rise) threshold_ = window_;
}

void Cubic::reduce() {
  // Fast convergence, RFC 9438 section 4.7.
  highest_ = window_ < highest_ ? window_ * (1 + kBeta) / 2 : window_;
  before_ = window_;
  threshold_ = std::max(window_ * kBeta, kMinWindow);
  in_epoch_ = false;
}

void Cubic::lost(uint32_t /*count*/, Time sent, Time now) {
  if (sent <= reduced_) return;
  reduced_ = now;
  reduce();
  window_ = threshold_;
  last_growth_ = now;
}

void Cubic::collapsed(Time now) {
  if (window_ <= kMinWindow) return;
  reduce();
  window_ = kMinWindow;
  last_growth_ = now;
}

void Cubic::idled() {
  threshold_ = std::max(threshold_, window_ * 3 / 4);  // RFC 7661's way of remembering
  window_ = std::min<double>(window_, kInitialWindow);
  in_epoch_ = false;
  round_.forget();
}

}  // namespace diwarp::dgram
