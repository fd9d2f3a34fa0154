// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <diwarp/completion_queue.h>

#include <array>
#include <cstddef>
#include <span>

#include "common/control.h"
#include "common/spin.h"

namespace diwarp::tools {

/// Polls a completion queue for one end of a run, as spin() does.
class Poller {
 public:
  Poller(CompletionQueue& cq, Control& control) : cq_(cq), control_(control) {}

  /// The completions, valid until the next call. Nothing if `deadline` passed, or if a message of
  /// the peer waits in the control channel. Throws PeerGone, Interrupted.
  std::span<const WorkCompletion> next(Time deadline) {
    return next(deadline, [] { return false; });
  }

  /// Ends, with nothing, as soon as `also` returns true, too; it is asked before each poll.
  template <class Also>
  std::span<const WorkCompletion> next(Time deadline, Also&& also) {
    count_ = 0;
    spin(
        control_, deadline, [&] { return also() || poll(); },
        [&](Duration limit) { return poll(limit); });
    return std::span(completions_).first(count_);
  }

 private:
  bool poll() { return (count_ = cq_.poll(completions_)) > 0; }
  bool poll(Duration limit) { return (count_ = cq_.poll(completions_, limit)) > 0; }

  CompletionQueue& cq_;
  Control& control_;
  std::array<WorkCompletion, 32> completions_;
  size_t count_ = 0;
};

}  // namespace diwarp::tools
