// SPDX-License-Identifier: Apache-2.0
#include "dgram/round_trip.h"

#include <algorithm>
#include <chrono>

namespace diwarp::dgram {
namespace {

using std::chrono::milliseconds;

// Below that, a scheduler's turn would look like a loss.
constexpr Duration kGranularity = milliseconds(2);
// Until a round trip was measured (RFC 6298 section 2.1 has a second; the handshake measures one).
constexpr Duration kUnmeasured = milliseconds(200);

}  // namespace

void RoundTrip::add(Duration sample) {
  sample = std::max(sample, Duration(1));
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

}  // namespace diwarp::dgram
