// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <queue>
#include <random>
#include <vector>

#include "switch/frame.h"

namespace network {

using Time = std::chrono::nanoseconds;

/// The treatment of TCP and UDP packets on the way out of a port. Everything else passes as it is.
struct Impairment {
  double loss = 0;  ///< share of the packets that are dropped
  /// How many losses come in a row, on average; 1: they are independent of each other. In a state
  /// of the way out (Gilbert's model) every packet is lost, in the other none.
  double burst = 1;
  uint64_t every = 0;    ///< each so many-th packet is dropped; 0: none
  double duplicate = 0;  ///< probability that a packet leaves twice
  double corrupt = 0;    ///< probability that a bit of a packet's payload is flipped
  double reorder = 0;    ///< probability that a packet is late by `lateness`
  Time lateness{300'000};
  Time delay{0};                 ///< of every packet
  Time jitter{0};                ///< a random part of it is added to the delay
  uint64_t bits_per_second = 0;  ///< 0: no limit
  size_t queue = 100;            ///< packets that may wait for their turn; one more is dropped
  uint64_t seed = 1;
};

enum class Fate : uint8_t { passed, late, lost, overflowed };

/// The way out of one port: decides each packet's fate and when it leaves. No I/O and no clock: the
/// same seed and the same packets have the same fates (but for those of the queue, which depend on
/// when packets come).
class Egress {
 public:
  explicit Egress(const Impairment& impairment)
      : impairment_(impairment), random_(impairment.seed) {}

  /// Takes a frame, or drops it. `packet` is what it carries.
  Fate offer(const Frame& frame, const Packet& packet, Time now);
  /// The next frame that is to leave by now.
  std::optional<Frame> take(Time now);
  std::optional<Time> next() const;

 private:
  struct Waiting {
    Time leaves{};
    uint64_t number = 0;
    Frame frame = {};
    bool operator>(const Waiting& other) const {
      return leaves != other.leaves ? leaves > other.leaves : number > other.number;
    }
  };

  double draw();
  bool happens(double probability) { return draw() < probability; }
  /// Whether the next packet is lost by chance or by count.
  bool loses_next();
  Frame corrupted(Frame frame, const Packet& packet);
  /// When the packet is through the bottleneck; nothing if its queue is full.
  std::optional<Time> through(size_t bytes, Time now);
  void schedule(const Frame& frame, Time leaves);

  Impairment impairment_;
  std::mt19937_64 random_;
  bool in_burst_ = false;
  uint64_t offered_ = 0;
  std::deque<Time> ends_;  // of the packets in the bottleneck, in order
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
  uint64_t number_ = 0;
};

}  // namespace network
