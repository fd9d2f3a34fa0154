// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stat/sample.h"

namespace diwarp::tools {

/// What a table has of a device: sums over datagrams and RC.
struct Figures {
  uint64_t packets_in = 0;
  uint64_t bytes_in = 0;
  uint64_t packets_out = 0;
  uint64_t bytes_out = 0;
  uint64_t drops = 0;
  uint64_t crc_errors = 0;  ///< those of datagrams are drops as well
  uint64_t retransmissions = 0;
  uint64_t completions = 0;
  uint64_t work_ns = 0;
  uint64_t idle_ns = 0;

  // At the moment.
  uint64_t queue_pairs = 0;
  uint64_t open_records = 0;
  uint64_t completion_queues = 0;
  uint64_t waiting = 0;  ///< completions that nobody has polled yet
};

Figures figures_of(const DeviceSnapshot& device);

/// The counters of what was dropped that are not 0, without their "drop_".
using Reasons = std::vector<std::pair<std::string, uint64_t>>;
Reasons drops_of(const DeviceSnapshot& device);

/// A device's figures, and their growth over a time: since an earlier sample, or, of a device that
/// was not there yet, since it was opened.
struct Growth {
  Figures all;
  Figures grown;  ///< the sums alone
  double seconds = 0;

  double rate(uint64_t Figures::*sum) const;
  /// Of the time, 0 to 1: the engine's steps that moved something, and those that did not. The
  /// rest it slept, or nobody ran it.
  double work_share() const;
  double idle_share() const;
};

/// `before`: null for since it was opened.
Growth growth_of(const DeviceSample& device, const Sample& now, const Sample* before);

}  // namespace diwarp::tools
