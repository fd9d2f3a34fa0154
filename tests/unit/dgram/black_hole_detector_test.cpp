// SPDX-License-Identifier: Apache-2.0
#include "dgram/black_hole_detector.h"

#include <cstdint>
#include <utility>

#include "support/catch.h"

using diwarp::dgram::BlackHoleDetector;

namespace {

constexpr uint32_t kLong = 1400;
constexpr uint32_t kShort = 100;

void resend(BlackHoleDetector& detector, int times, uint64_t sequence = 7,
            uint32_t length = kLong) {
  for (int i = 0; i < times; ++i) detector.resent(sequence, length);
}

void prove(BlackHoleDetector& detector, int times) {
  for (int i = 0; i < times; ++i) {
    detector.probe_sent();
    detector.acknowledged_alone();
    detector.acknowledged_alone();  // which answers no probe
  }
}

}  // namespace

TEST_CASE("black hole: a datagram that never arrives while smaller ones do is found, once") {
  BlackHoleDetector detector;
  resend(detector, BlackHoleDetector::kDoubtful);
  CHECK(detector.doubts());
  const bool by_arrivals = GENERATE(true, false);
  for (int i = 0; i < BlackHoleDetector::kProofs; ++i)
    by_arrivals ? detector.arrived(kShort) : prove(detector, 1);
  resend(detector, BlackHoleDetector::kRepeats - BlackHoleDetector::kDoubtful - 1);
  CHECK_FALSE(detector.take());
  resend(detector, 1);
  CHECK(detector.take() == kLong);
  CHECK_FALSE(detector.take());
  CHECK_FALSE(detector.doubts());
}

TEST_CASE("black hole: where nothing gets through, the peer may be gone, and none is found") {
  BlackHoleDetector detector;
  resend(detector, 100);
  CHECK_FALSE(detector.take());
  CHECK(detector.doubts());
  prove(detector, BlackHoleDetector::kProofs);
  CHECK(detector.take() == kLong);
}

TEST_CASE("black hole: what got through before a datagram was sent again twice is no proof") {
  BlackHoleDetector detector;
  resend(detector, 1);
  prove(detector, 10);
  resend(detector, 20);
  CHECK_FALSE(detector.take());
}

TEST_CASE("black hole: any datagram as long that arrives ends the suspicion") {
  BlackHoleDetector detector;
  resend(detector, 5);
  prove(detector, 5);
  detector.arrived(kLong);
  CHECK_FALSE(detector.doubts());
  resend(detector, 5);
  prove(detector, 5);
  CHECK_FALSE(detector.take());
}

TEST_CASE("black hole: short datagrams are lost by chance alone, and later ones do not count") {
  BlackHoleDetector detector;
  resend(detector, 100, 7, BlackHoleDetector::kCarriedAnywhere);
  prove(detector, 100);
  CHECK_FALSE(detector.take());
  resend(detector, 2, 7);
  resend(detector, 100, 8);
  prove(detector, 100);
  CHECK_FALSE(detector.take());
  resend(detector, 1, 6);  // an earlier one: from the start
  CHECK_FALSE(detector.doubts());
}

TEST_CASE("black hole: counts do not wrap") {
  BlackHoleDetector detector;
  resend(detector, 1000);
  prove(detector, 1000);
  CHECK(detector.take() == kLong);
}
