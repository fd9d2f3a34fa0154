// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "fuzz/verbs_run.h"

namespace diwarp::fuzz {

/// What completes in a run, and the events that tell of it.
class VerbsCompletions {
 public:
  explicit VerbsCompletions(VerbsRun& run) : run_(run) {}

  void poll_all();
  /// Returns how many there were.
  size_t poll(VerbsCq& cq, size_t most);
  /// Arms a completion queue, or takes an event. No more come than were asked for.
  void listen_to_events();

 private:
  void take(unsigned device, const WorkCompletion& completion);
  void check_sink(unsigned device, const VerbsSink& sink, const WorkCompletion& completion);

  VerbsRun& run_;
  uint32_t armed_ = 0;  // notifications that were asked for and did not come
};

}  // namespace diwarp::fuzz
