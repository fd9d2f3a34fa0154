// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/verbs_completions.h"
#include "fuzz/verbs_run.h"

namespace diwarp::fuzz {

/// The states of queue pairs: changed as the application may, and as connections change them.
class VerbsStates {
 public:
  VerbsStates(VerbsRun& run, VerbsCompletions& completions)
      : run_(run), completions_(completions) {}

  void change_state(VerbsQp& which);
  /// Over a stream in memory, as two sides do whose start-up negotiated this.
  void join(VerbsQp& a, VerbsQp& b);
  /// Calls that change nothing that the run knows of.
  void query(VerbsQp& which);
  /// In error, everything that was posted completes.
  void check_flushed(const VerbsQp& which);

 private:
  void reset(VerbsQp& which);

  VerbsRun& run_;
  VerbsCompletions& completions_;
};

}  // namespace diwarp::fuzz
