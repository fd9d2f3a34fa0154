// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"
#include "base/counters.h"
#include "llp/datagram_link.h"
#include "rnic/datagram/datagram_source.h"
#include "rnic/datagram/pacer.h"
#include "rnic/engine/transmit_source.h"

namespace diwarp::rnic {

/// Sends for a queue pair over datagrams: fills a burst from all its sources, in turn, at the pace
/// that the application set. With the baton.
class DatagramSender {
 public:
  /// `identity` names the queue pair. `segment`: the largest datagram by the application's choice,
  /// in bytes; 0: as the path carries.
  DatagramSender(dgram::Identity& identity, uint32_t segment, uint64_t max_rate)
      : identity_(identity), segment_(segment) {
    pacer_.set_rate(max_rate, Time{});
  }

  /// Before the first run(). At most kMaxSources.
  void add(DatagramSource& source);

  /// Sends one burst. Pending::more where the burst, not what there is to send, set the end.
  Served run(DatagramBurst& burst, llp::DatagramLink& link, Counters& counters, Time now);

  void set_max_rate(uint64_t rate, Time now) { pacer_.set_rate(rate, now); }
  /// Whether pacing, and nothing else, ended the last run(); ready_at() tells when it goes on.
  bool paced() const { return paced_; }
  Time ready_at() const { return pacer_.ready_at(); }

 private:
  static constexpr size_t kMaxSources = 4;

  /// Whether another burst is needed.
  bool fill(DatagramBurst& burst, llp::DatagramLink& link, Time now);
  void book(const DatagramBurst& burst, size_t sent, Counters& counters);

  dgram::Identity& identity_;
  const uint32_t segment_;
  bool paced_ = false;
  uint8_t count_ = 0;
  uint8_t first_ = 0;  // whose turn it is to fill first
  Pacer pacer_;
  std::array<DatagramSource*, kMaxSources> sources_{};
};

}  // namespace diwarp::rnic
