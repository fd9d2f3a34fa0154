// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace soak {

/// The times of a process, in seconds, and its rounds.
class RunClock {
 public:
  /// A round takes `round` seconds.
  explicit RunClock(double round) : round_(round) {}

  void start();
  /// One turn of the loop. The time in which a peer is stopped does not count as now().
  void tick(bool peer_stopped);

  /// Time in which this process and all its peers ran.
  double now() const { return now_; }
  /// Time in which this process ran.
  double wall() const { return wall_; }

  /// Rounds that are over.
  uint64_t rounds() const { return rounds_; }
  bool round_over() const { return wall_ >= next_round_; }
  void end_round() {
    next_round_ = wall_ + round_;
    ++rounds_;
  }

 private:
  const double round_;
  double now_ = 0;
  double wall_ = 0;
  double last_ = 0;  // of the steady clock, at the last tick
  double next_round_ = 0;
  uint64_t rounds_ = 0;
};

}  // namespace soak
