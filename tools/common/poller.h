// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/completion_queue.h>

#include <array>
#include <cstddef>
#include <span>

#include "common/control.h"

namespace diwarp::tools {

/// Polls a completion queue for one end of a run. It spins, as a measurement wants, and looks after
/// the peer and the user once a millisecond, so that no wait goes on for a peer that died. After
/// half a second without a completion it sleeps in short slices.
class Poller {
 public:
  Poller(CompletionQueue& cq, Control& control) : cq_(cq), control_(control) {}

  /// What completed, valid until the next call. Nothing if `deadline` passed, or if a message of
  /// the peer waits in the control channel. Throws PeerGone, Interrupted.
  std::span<const WorkCompletion> next(Time deadline);

 private:
  bool spin(Time until);
  void sleep(Duration limit);
  std::span<const WorkCompletion> found() const { return std::span(completions_).first(count_); }

  CompletionQueue& cq_;
  Control& control_;
  std::array<WorkCompletion, 32> completions_;
  size_t count_ = 0;
};

}  // namespace diwarp::tools
